// Every step from an empty PostgreSQL database to this version, in order. Steps that a released version has are never changed.
import type { Migration } from "../engine/migration.ts";
import bucketBlobs from "./bucket-blobs.sql" with { type: "text" };
import cluster from "./cluster.sql" with { type: "text" };
import tables from "./migrations/0000_tables.sql" with { type: "text" };
import groupsToOauth2 from "./migrations/0001_groups_to_oauth2.sql" with { type: "text" };
import agentsLatency from "./migrations/0002_agents_latency.sql" with { type: "text" };
import parts from "./migrations/0003_parts.sql" with { type: "text" };
import partsOfNodes from "./parts/parts.sql" with { type: "text" };
import search from "./search.sql" with { type: "text" };
import told from "./told/told.sql" with { type: "text" };
import versions from "./told/versions.sql" with { type: "text" };
import workspaceVersions from "./told/workspace-versions.sql" with { type: "text" };
import userStatus from "./user-status.sql" with { type: "text" };

export const PG_MIGRATIONS: readonly Migration[] = [
  { name: "0000_tables", sql: tables },
  // Written by hand: what Drizzle does not know.
  { name: "0000_search", sql: search },
  { name: "0000_user_status", sql: userStatus },
  { name: "0000_cluster", sql: cluster },
  { name: "0001_groups_to_oauth2", sql: groupsToOauth2 },
  { name: "0002_agents_latency", sql: agentsLatency },
  { name: "0003_parts", sql: parts },
  { name: "0004_parts_of_nodes", sql: partsOfNodes },
  { name: "0005_versions", sql: versions },
  { name: "0006_bucket_blobs", sql: bucketBlobs },
  { name: "0007_workspace_versions", sql: workspaceVersions },
  { name: "0008_told", sql: told },
];
