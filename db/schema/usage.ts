// Usage data for the insights reports. Minutes are stored as masks of half-hour buckets (facts/platform 6.1). Finished buckets are
// aggregated into one packed row per user, template and 32 days (db/reports/usage/block.ts). Written only by actors/usage/.
import { blob, index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";

/** Integer keys of users, templates and apps. */
export const usage_keys = uncachedTable(
  "usage_keys",
  {
    key: integer().primaryKey(),
    /** 0 user, 1 template, 2 app */
    kind: integer().notNull(),
    /** The ID; for an app: JSON [slug, display_name, icon, "builtin" or "app"]. */
    name: text().notNull(),
  },
  (table) => [uniqueIndex("usage_keys_name").on(table.kind, table.name)],
);

/** Minutes of buckets that are not aggregated yet. */
export const usage_minutes = uncachedTable(
  "usage_minutes",
  {
    /** Half hours since 1970, UTC. */
    bucket: integer().notNull(),
    user: integer().notNull(),
    template: integer().notNull(),
    /** 0: any usage at all. */
    app: integer().notNull(),
    /** Bit n: used in the nth minute of the bucket. */
    mask: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.bucket, table.user, table.template, table.app] })],
);

/** Reported latencies in buckets that are not aggregated yet. */
export const usage_latencies = uncachedTable(
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

/** Data for reports over whole blocks; small, so that a year of many users can be read at a time. */
export const usage_digests = uncachedTable("usage_digests", {
  /** Block, user and template in one number (db/reports/usage/block.ts), so that rows are stored in the order they are read. */
  id: integer().primaryKey(),
  digest: blob({ mode: "buffer" }).notNull(),
});

/** Every bucket of the block, for ranges that begin or end within it. */
export const usage_details = uncachedTable("usage_details", {
  id: integer().primaryKey(),
  detail: blob({ mode: "buffer" }).notNull(),
});

/** Number of writes per block, which lets reports cache their data until it changes (db/reports/usage/parts.ts). */
export const usage_blocks = uncachedTable("usage_blocks", {
  block: integer().primaryKey(),
  version: integer().notNull(),
});

/** One row per change of a user's status, created by triggers (db/migrations) in the same transaction. */
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
