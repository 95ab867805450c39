// Pending deliveries, the browsers that receive them, and people's notification preferences.
import { and, asc, count, eq, gt, lte, sql } from "drizzle-orm";
import {
  build,
  deleteBy,
  eqParam,
  findBy,
  insertInto,
  query,
  type Statement,
  statement,
  updateBy,
} from "../engine/sql.ts";
import { notification_deliveries, notification_preferences, webpush_subscriptions } from "../schema/notifications.ts";
import { api_keys } from "../schema/users.ts";

export type DeliveryRow = typeof notification_deliveries.$inferSelect;
export type SubscriptionRow = typeof webpush_subscriptions.$inferSelect;

const INSERT_DELIVERY = `insert into notification_deliveries (notification_id, user_id, method, subscription_id, attempts, due)
  values (?, ?, ?, ?, 0, ?)`;

export const insertDelivery = (
  row: Pick<DeliveryRow, "notification_id" | "user_id" | "method" | "subscription_id" | "due">,
): Statement => ({
  touches: [],
  sql: INSERT_DELIVERY,
  rows: [[row.notification_id, row.user_id, row.method, row.subscription_id, row.due]],
});

/** Due deliveries, oldest first. Parameters: {now}. */
export const listDueDeliveries = query(
  build
    .select()
    .from(notification_deliveries)
    .where(lte(notification_deliveries.due, sql.placeholder("now")))
    .orderBy(asc(notification_deliveries.due))
    .limit(50),
);

export const countDeliveries = query(build.select({ count: count().as("count") }).from(notification_deliveries));
export const updateDelivery = updateBy(notification_deliveries, notification_deliveries.key);
export const deleteDelivery = deleteBy(notification_deliveries, notification_deliveries.key);

/** A user's push subscriptions whose session is valid, oldest first. Parameters: {user_id, now}. */
export const listSubscriptions = query(
  build
    .select({ id: webpush_subscriptions.id, endpoint_hash: webpush_subscriptions.endpoint_hash })
    .from(webpush_subscriptions)
    .innerJoin(api_keys, eq(api_keys.id, webpush_subscriptions.key_id))
    .where(and(eqParam(webpush_subscriptions.user_id), gt(api_keys.expires_at, sql.placeholder("now"))))
    .orderBy(asc(webpush_subscriptions.created_at)),
);

/** A push subscription by its ID. Parameters: {id}. */
export const findSubscription = query(
  build
    .select({ subscription: webpush_subscriptions, session_until: api_keys.expires_at })
    .from(webpush_subscriptions)
    .innerJoin(api_keys, eq(api_keys.id, webpush_subscriptions.key_id))
    .where(eqParam(webpush_subscriptions.id)),
);

export const insertSubscription = insertInto(webpush_subscriptions);
export const deleteSubscription = deleteBy(webpush_subscriptions, webpush_subscriptions.id);

const isSubscription = and(eqParam(webpush_subscriptions.user_id), eqParam(webpush_subscriptions.endpoint_hash));
/** Parameters: {user_id, endpoint_hash}. */
export const findSubscriptionAt = query(build.select().from(webpush_subscriptions).where(isSubscription));

/** Parameters: {user_id}. */
export const listPreferences = findBy(notification_preferences, notification_preferences.user_id);

type Preference = typeof notification_preferences.$inferInsert;
export const upsertPreference = statement<Preference>(
  build
    .insert(notification_preferences)
    .values({
      user_id: sql.placeholder("user_id"),
      template_id: sql.placeholder("template_id"),
      disabled: sql.placeholder("disabled"),
      updated_at: sql.placeholder("updated_at"),
    })
    .onConflictDoUpdate({
      target: [notification_preferences.user_id, notification_preferences.template_id],
      set: { disabled: sql`excluded.disabled`, updated_at: sql`excluded.updated_at` },
    }),
);
