// Notifications: people's inboxes, pending deliveries, push subscriptions, and preferences. Inserted in the batch of the change they
// describe; sent and deleted by actors/notifications/.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { uncachedTable } from "./cache-dependencies.ts";
import { userId } from "./columns.ts";
import { api_keys } from "./users.ts";

export type NoticeAction = { label: string; url: string };

export const notifications = uncachedTable(
  "notifications",
  {
    /** In the order of writing. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    user_id: userId(),
    /** src/schema/notifications/kinds.ts */
    template_id: text().notNull(),
    /** IDs of the entities it is about. */
    targets: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    title: text().notNull(),
    content: text().notNull(),
    icon: text().notNull().default(""),
    actions: text({ mode: "json" }).$type<NoticeAction[]>().notNull().default([]),
    /** Identifies the change, so that it produces only one notification. */
    dedupe: text().notNull(),
    created_at: integer().notNull(),
    read_at: integer(),
    /** When its deliveries were created; null: not yet. */
    dispatched_at: integer(),
  },
  (table) => [
    uniqueIndex("notifications_dedupe").on(table.user_id, table.dedupe),
    index("notifications_inbox").on(table.user_id, table.key),
    index("notifications_undispatched").on(table.key).where(sql`${table.dispatched_at} is null`),
    index("notifications_created").on(table.created_at),
  ],
);

/** Pending deliveries. Deleted when delivered or given up. */
export const notification_deliveries = uncachedTable(
  "notification_deliveries",
  {
    key: integer().primaryKey(),
    notification_id: text().notNull(),
    user_id: text().notNull(),
    method: text().$type<"smtp" | "webpush">().notNull(),
    /** For web push: the subscription. */
    subscription_id: text(),
    attempts: integer().notNull().default(0),
    due: integer().notNull(),
  },
  (table) => [index("notification_deliveries_due").on(table.due)],
);

/** Push subscriptions of browsers. The address is a secret of the push service, the browser and the server, so it is encrypted. */
export const webpush_subscriptions = uncachedTable(
  "webpush_subscriptions",
  {
    id: text().primaryKey(),
    user_id: userId(),
    /** The session that subscribed the browser. The row is deleted with it; rows without one are not used. */
    key_id: text().references(() => api_keys.id, { onDelete: "cascade" }),
    /** SHA-256 of the address, hex. */
    endpoint_hash: text().notNull(),
    /** JSON {endpoint, auth, p256dh}, encrypted. */
    sealed: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [
    uniqueIndex("webpush_subscriptions_endpoint").on(table.user_id, table.endpoint_hash),
    index("webpush_subscriptions_key").on(table.key_id),
  ],
);

export const notification_preferences = uncachedTable(
  "notification_preferences",
  {
    user_id: userId(),
    template_id: text().notNull(),
    disabled: integer({ mode: "boolean" }).notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.template_id] })],
);
