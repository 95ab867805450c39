// Repositories whose image is built ahead. Inserted and deleted by the domain; how a build went is written by the keeper on the first node
// (actors/image-prebuilds).
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { RepositoryPrebuildStatus } from "#schema/templates/repository-prebuild.ts";
import { organizationId, userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

/** The images of one commit, by their names on the engine. */
export type KeptImages = { readonly commit: string; readonly names: readonly string[] };

export const repository_prebuilds = quietTable(
  "repository_prebuilds",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    /** Whose linked account reads the repository. */
    owner_id: userId(),
    url: text().notNull(),
    name: text().notNull(),
    /** Hours between two looks without a push; 0: none. */
    interval_hours: integer().notNull().default(0),
    keep: integer().notNull(),
    status: text().$type<RepositoryPrebuildStatus>().notNull(),
    error: text().notNull().default(""),
    commit: text().notNull().default(""),
    /** The kept images, the newest first. */
    images: text({ mode: "json" }).$type<readonly KeptImages[]>().notNull().default([]),
    log: text().notNull().default(""),
    /** Failed tries since the last one that succeeded. */
    tries: integer().notNull().default(0),
    built_at: integer(),
    /** When it is next looked at without a push. */
    next_at: integer(),
    created_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("repository_prebuilds_url").on(table.organization_id, table.url),
    index("repository_prebuilds_owner").on(table.owner_id),
  ],
);
