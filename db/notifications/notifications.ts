// Notifications: written in the batch of the event, read by their owner, marked as read, and deleted after their retention period.
import { and, count, desc, isNull, lt, sql } from "drizzle-orm";
import { uuid } from "#base/ids.ts";
import { fillPlaceholders, NOTICE_KINDS, type NoticeName } from "#schema/notifications/kinds.ts";
import { build, eqParam, findBy, query, type Statement, statement } from "../engine/sql.ts";
import { notifications } from "../schema/notifications.ts";

export type NotificationRow = typeof notifications.$inferSelect;

/** A notification for one person. */
export type Notice = {
  readonly now: number;
  readonly user_id: string;
  readonly kind: NoticeName;
  /** Values for the text of the kind. */
  readonly values: Readonly<Record<string, string>>;
  readonly targets?: readonly string[];
  readonly icon?: string;
  /** The path of the subject's page in the web app. */
  readonly path: string;
  /** Identifies the change, so that a repeated notification has no effect. */
  readonly dedupe: string;
};

const INSERT_NOTIFICATION = `insert into notifications
  (id, user_id, template_id, targets, title, content, icon, actions, dedupe, created_at, read_at, dispatched_at)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, null, null
  where not exists (select 1 from notification_preferences where user_id = ?2 and template_id = ?3 and disabled = 1)
  on conflict (user_id, dedupe) do nothing`;

/** Returns the insert for the batch of the change. Writes nothing for a person who has muted the kind (rule NO-2). */
export const insertNotification = ({
  now,
  user_id,
  kind,
  values,
  targets = [],
  icon = "",
  path,
  dedupe,
}: Notice): Statement => {
  const { id, title, body, action } = NOTICE_KINDS[kind];
  const actions = JSON.stringify([{ label: action, url: path }]);
  const texts = [fillPlaceholders(title, values), fillPlaceholders(body, values)];
  return {
    touches: [],
    sql: INSERT_NOTIFICATION,
    rows: [[uuid(), user_id, id, JSON.stringify(targets), ...texts, icon, actions, dedupe, now]],
  };
};

/** Retracts a notification, for example that a chat is waiting, when the chat continues. */
export const retractNotice = statement<{ user_id: string; dedupe: string }>(
  build.delete(notifications).where(and(eqParam(notifications.user_id), eqParam(notifications.dedupe))),
);

/** Rows deleted per commit, and the maximum kept per person. */
const SLICE_ROWS = 500;
export const MAX_KEPT = 1_000;

const isOfUser = eqParam(notifications.user_id);
const MATCHES_READ = sql`(${sql.placeholder("read")} = 'all' or (${notifications.read_at} is null) = (${sql.placeholder("read")} = 'unread'))`;
const isAnyOf = (column: typeof notifications.template_id, name: string) =>
  sql`(${sql.placeholder(name)} = '[]' or ${column} in (select value from json_each(${sql.placeholder(name)})))`;

/** A user's notifications, newest first. Parameters: {user_id, read, templates (JSON list, empty: all), before (key), limit}. */
export const listNotifications = query(
  build
    .select()
    .from(notifications)
    .where(
      and(
        isOfUser,
        MATCHES_READ,
        isAnyOf(notifications.template_id, "templates"),
        lt(notifications.key, sql.placeholder("before")),
      ),
    )
    .orderBy(desc(notifications.key))
    .limit(sql.placeholder("limit")),
);

/** A user's notifications after the one with this key. Parameters: {user_id, after}. */
export const listNotificationsAfter = query(
  build
    .select()
    .from(notifications)
    .where(and(isOfUser, sql`${notifications.key} > ${sql.placeholder("after")}`))
    .orderBy(notifications.key)
    .limit(100),
);

/** One notification of a user. Parameters: {user_id, id}. */
export const findNotification = query(
  build
    .select()
    .from(notifications)
    .where(and(isOfUser, eqParam(notifications.id))),
);

/** The newest notification of a user. Parameters: {user_id}. */
export const findNewestNotification = query(
  build
    .select({ key: notifications.key })
    .from(notifications)
    .where(isOfUser)
    .orderBy(desc(notifications.key))
    .limit(1),
);

/** Parameters: {user_id}. */
export const countUnread = query(
  build
    .select({ count: count().as("count") })
    .from(notifications)
    .where(and(isOfUser, isNull(notifications.read_at))),
);

/** Marks a notification as read or unread. Rejected as `stale` when the notification does not exist. */
export const markNotification = statement<{ user_id: string; id: string; read_at: number | null }>(
  build
    .update(notifications)
    .set({ read_at: sql`${sql.placeholder("read_at")}` })
    .where(and(isOfUser, eqParam(notifications.id))),
  { expect: 1 },
);

export const markAllNotifications = statement<{ user_id: string; read_at: number }>(
  build
    .update(notifications)
    .set({ read_at: sql`${sql.placeholder("read_at")}` })
    .where(and(isOfUser, isNull(notifications.read_at))),
);

/** Page size of notifications without deliveries, oldest first. */
export const MAX_UNDISPATCHED = 100;
export const listUndispatched = query(
  build
    .select()
    .from(notifications)
    .where(isNull(notifications.dispatched_at))
    .orderBy(notifications.key)
    .limit(MAX_UNDISPATCHED),
);

export const markDispatched = statement<{ key: number; now: number }>(
  build
    .update(notifications)
    .set({ dispatched_at: sql`${sql.placeholder("now")}` })
    .where(eqParam(notifications.key)),
);

/** A notification by its ID, of any user. Parameters: {id}. */
export const findNotificationById = findBy(notifications, notifications.id);

/** A notification older than `before`. Parameters: {before}. */
export const findOldNotification = query(
  build
    .select({ key: notifications.key })
    .from(notifications)
    .where(lt(notifications.created_at, sql.placeholder("before")))
    .limit(1),
);

export const deleteOldNotifications = (before: number): Statement => ({
  touches: [],
  sql: `delete from notifications where key in (select key from notifications where created_at < ? order by key limit ${SLICE_ROWS})`,
  rows: [[before]],
});

/** Returns a row if the user has more notifications than the maximum. Parameters: {user_id}. */
export const findTooMany = query(
  build
    .select({ key: notifications.key })
    .from(notifications)
    .where(isOfUser)
    .orderBy(desc(notifications.key))
    .limit(1)
    .offset(MAX_KEPT),
);

/** Deletes all but the newest notifications of a user. */
export const trimNotifications = (user_id: string): Statement => ({
  touches: [],
  sql: `delete from notifications where user_id = ?1 and key <= (select key from notifications where user_id = ?1
    order by key desc limit 1 offset ${MAX_KEPT})`,
  rows: [[user_id]],
});
