// Repositories whose image is built in advance. Inserted and deleted by the domain; the results of builds are written by the keeper on the
// first node (actors/image-prebuilds).
import { index, integer, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { RepositoryPrebuildStatus } from "#schema/templates/repository-prebuild.ts";
import { uncachedTable } from "./cache-dependencies.ts";
import { organizationId, userId } from "./columns.ts";

/** The images of one commit, by their names in the engine. */
export type CommitImages = { readonly commit: string; readonly names: readonly string[] };

export const repository_prebuilds = uncachedTable(
  "repository_prebuilds",
  {
    id: text().primaryKey(),
    organization_id: organizationId(),
    /** The user whose linked account reads the repository. */
    owner_id: userId(),
    url: text().notNull(),
    name: text().notNull(),
    /** Hours between two checks without a push; 0: none. */
    interval_hours: integer().notNull().default(0),
    keep: integer().notNull(),
    status: text().$type<RepositoryPrebuildStatus>().notNull(),
    error: text().notNull().default(""),
    commit: text().notNull().default(""),
    /** The kept images, newest first. */
    images: text({ mode: "json" }).$type<readonly CommitImages[]>().notNull().default([]),
    log: text().notNull().default(""),
    /** Failures since the last success. */
    tries: integer().notNull().default(0),
    built_at: integer(),
    /** When it is next checked without a push. */
    next_at: integer(),
    created_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("repository_prebuilds_url").on(table.organization_id, table.url),
    index("repository_prebuilds_owner").on(table.owner_id),
  ],
);
