// Who used what, for the reports of insights. Minutes come in as masks of half-hour buckets (facts/platform 6.1) and are folded, once a
// bucket is over, into one packed row for each user, template and 32 days (db/reports/usage/block.ts). Written by actors/usage/ only.
import { blob, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";

/** Integer keys of what usage is about. */
export const usage_keys = quietTable(
  "usage_keys",
  {
    key: integer().primaryKey(),
    /** 0 user, 1 template, 2 app */
    kind: integer().notNull(),
    /** The id; of an app: JSON [slug, display_name, icon, "builtin" or "app"]. */
    name: text().notNull(),
  },
  (table) => [uniqueIndex("usage_keys_name").on(table.kind, table.name)],
);

/** Minutes of buckets that are not folded yet. */
export const usage_minutes = quietTable(
  "usage_minutes",
  {
    /** Half hours since 1970, UTC. */
    bucket: integer().notNull(),
    user: integer().notNull(),
    template: integer().notNull(),
    /** 0: any use at all. */
    app: integer().notNull(),
    /** Bit n: used in the nth minute of the bucket. */
    mask: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.bucket, table.user, table.template, table.app] })],
);

/** Latencies that agents reported in buckets that are not folded yet. */
export const usage_latencies = quietTable(
  "usage_latencies",
  {
    bucket: integer().notNull(),
    user: integer().notNull(),
    template: integer().notNull(),
    /** Milliseconds. */
    ms: integer().notNull(),
    count: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.bucket, table.user, table.template, table.ms] })],
);

/** What reports over whole blocks need; small, so that a year of many users is read at once. */
export const usage_digests = quietTable("usage_digests", {
  /** Block, user and template in one number (db/reports/usage/block.ts), so that rows lie in the order they are read. */
  id: integer().primaryKey(),
  digest: blob({ mode: "buffer" }).notNull(),
});

/** Every bucket of the block, for ranges that begin or end within it. */
export const usage_details = quietTable("usage_details", {
  id: integer().primaryKey(),
  detail: blob({ mode: "buffer" }).notNull(),
});

/** How often something of a block was written, so that what a report took from it can be kept until it changes (db/reports/usage/parts.ts). */
export const usage_blocks = quietTable("usage_blocks", {
  block: integer().primaryKey(),
  version: integer().notNull(),
});

/** One row for each change of a user's status, made by triggers (db/migrations) in the transaction of the change itself. */
export const user_status_changes = sqliteTable(
  "user_status_changes",
  {
    id: integer().primaryKey(),
    user_id: text().notNull(),
    /** active | dormant | suspended; deleted: no longer counted. */
    status: text().notNull(),
    at: integer().notNull(),
  },
  (table) => [index("user_status_changes_user").on(table.user_id, table.id)],
);
