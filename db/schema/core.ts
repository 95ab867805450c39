// Tables of the store itself: who may write (epoch), which numbers are taken (sequences), what is due (timers), and what one
// actor still has to tell another (outbox).
import { index, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { quietTable } from "./touching.ts";

/** One row. Raised at each start; every group commit checks it (rule ST-5). */
export const epoch = sqliteTable("epoch", { id: integer().primaryKey(), value: integer().notNull() });

/** `next` is the first number not yet handed out to any process. */
export const sequences = quietTable("sequences", { name: text().primaryKey(), next: integer().notNull() });

/** Work that becomes a message to an actor when its time comes; the scheduler is the only reader. */
export const timers = quietTable(
  "timers",
  {
    /** `<actor>/<id>/<name>`: one timer of each name for each actor. */
    id: text().primaryKey(),
    actor: text().notNull(),
    actor_id: text().notNull(),
    name: text().notNull(),
    due: integer().notNull(),
  },
  (table) => [index("timers_due").on(table.due)],
);

/** Deployment-wide values: id of this deployment, the encryption key's fingerprint and the like. */
export const settings = sqliteTable("settings", { key: text().primaryKey(), value: text().notNull() });
