// Tables of the store itself: who may write (epoch), used numbers (sequences), due work (timers), and settings.
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";

/** A single row. Incremented at each start; every group commit checks it (rule ST-5). */
export const epoch = sqliteTable("epoch", { id: integer().primaryKey(), value: integer().notNull() });

/** `next` is the first number not yet allocated to any process. */
export const sequences = uncachedTable("sequences", { name: text().primaryKey(), next: integer().notNull() });

/** Scheduled messages to actors. Read only by the scheduler. */
export const timers = uncachedTable(
  "timers",
  {
    /** `<actor>/<id>/<name>`: one timer per name and actor. */
    id: text().primaryKey(),
    actor: text().notNull(),
    actor_id: text().notNull(),
    name: text().notNull(),
    due: integer().notNull(),
  },
  (table) => [index("timers_due").on(table.due)],
);

/** Deployment-wide values, such as the ID of this deployment and the encryption key's fingerprint. */
export const settings = sqliteTable("settings", { key: text().primaryKey(), value: text().notNull() });
