// What people are told: their inbox, what is still to be sent outside, where browsers take it, and what they do not want to hear of.
// Inserted in the batch of the change that it tells of; sent and let go by actors/notifications/.
import { sql } from "drizzle-orm";
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import { userId } from "./columns.ts";
import { quietTable } from "./touching.ts";

export type NoticeAction = { label: string; url: string };

export const notifications = quietTable(
  "notifications",
  {
    /** In the order in which they were written. */
    key: integer().primaryKey(),
    id: text().notNull().unique(),
    user_id: userId(),
    /** src/schema/notifications/kinds.ts */
    template_id: text().notNull(),
    /** Ids of what it is about. */
    targets: text({ mode: "json" }).$type<string[]>().notNull().default([]),
    title: text().notNull(),
    content: text().notNull(),
    icon: text().notNull().default(""),
    actions: text({ mode: "json" }).$type<NoticeAction[]>().notNull().default([]),
    /** The same change told twice is one notice. */
    dedupe: text().notNull(),
    created_at: integer().notNull(),
    read_at: integer(),
    /** When its deliveries were written; null: they are not yet. */
    dispatched_at: integer(),
  },
  (table) => [
    uniqueIndex("notifications_dedupe").on(table.user_id, table.dedupe),
    index("notifications_inbox").on(table.user_id, table.key),
    index("notifications_undispatched").on(table.key).where(sql`${table.dispatched_at} is null`),
    index("notifications_created").on(table.created_at),
  ],
);

/** What is on its way outside; gone when it has arrived or is given up. */
export const notification_deliveries = quietTable(
  "notification_deliveries",
  {
    key: integer().primaryKey(),
    notification_id: text().notNull(),
    user_id: text().notNull(),
    method: text().$type<"smtp" | "webpush">().notNull(),
    /** Of web push: the subscription. */
    subscription_id: text(),
    attempts: integer().notNull().default(0),
    due: integer().notNull(),
  },
  (table) => [index("notification_deliveries_due").on(table.due)],
);

/** Where a browser takes what it is pushed. The address is a secret between the browser's maker, the browser and us: it is sealed. */
export const webpush_subscriptions = quietTable(
  "webpush_subscriptions",
  {
    id: text().primaryKey(),
    user_id: userId(),
    /** SHA-256 of the address, hex. */
    endpoint_hash: text().notNull(),
    /** JSON {endpoint, auth, p256dh}, sealed. */
    sealed: text().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [uniqueIndex("webpush_subscriptions_endpoint").on(table.user_id, table.endpoint_hash)],
);

export const notification_preferences = quietTable(
  "notification_preferences",
  {
    user_id: userId(),
    template_id: text().notNull(),
    disabled: integer({ mode: "boolean" }).notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.user_id, table.template_id] })],
);
