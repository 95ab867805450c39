// Notices to people: written in the batch of what they tell of, read by their owner, marked as read, and let go in their time.
import { and, count, desc, isNull, lt, sql } from "drizzle-orm";
import { uuid } from "#base/ids.ts";
import { filledIn, NOTICE_KINDS, type NoticeName } from "#schema/notifications/kinds.ts";
import { build, deleteBy, findBy, given, query, type Statement, statement } from "../engine/sql.ts";
import { notifications } from "../schema/notifications.ts";

export type NotificationRow = typeof notifications.$inferSelect;

/** One thing that someone is to be told. */
export type Notice = {
  readonly now: number;
  readonly user_id: string;
  readonly kind: NoticeName;
  /** What fills in the words of the kind. */
  readonly values: Readonly<Record<string, string>>;
  readonly targets?: readonly string[];
  readonly icon?: string;
  /** A path of the app. */
  readonly path: string;
  /** The same change has the same one: told again it is nothing new. */
  readonly dedupe: string;
};

const INSERT = `insert into notifications
  (id, user_id, template_id, targets, title, content, icon, actions, dedupe, created_at, read_at, dispatched_at)
  select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, null, null
  where not exists (select 1 from notification_preferences where user_id = ?2 and template_id = ?3 and disabled = 1)
  on conflict (user_id, dedupe) do nothing`;

/** The insert, for the batch of the change; nothing is written for anyone who does not want to hear of it (rule NO-2). */
export const notified = ({ now, user_id, kind, values, targets = [], icon = "", path, dedupe }: Notice): Statement => {
  const { id, title, body, action } = NOTICE_KINDS[kind];
  const actions = JSON.stringify([{ label: action, url: path }]);
  const words = [filledIn(title, values), filledIn(body, values)];
  return {
    touches: [],
    sql: INSERT,
    rows: [[uuid(), user_id, id, JSON.stringify(targets), ...words, icon, actions, dedupe, now]],
  };
};

/** What was told under this name counts no more, such as that a chat waits when it continues. */
export const unnotified = statement<{ user_id: string; dedupe: string }>(
  build.delete(notifications).where(and(given(notifications.user_id), given(notifications.dedupe))),
);

/** Rows that go in one commit, and how many of a person are kept. */
const SLICE = 500;
export const MAX_KEPT = 1_000;

const ofUser = given(notifications.user_id);
const READ = sql`(${sql.placeholder("read")} = 'all' or (${notifications.read_at} is null) = (${sql.placeholder("read")} = 'unread'))`;
const among = (column: typeof notifications.template_id, name: string) =>
  sql`(${sql.placeholder(name)} = '[]' or ${column} in (select value from json_each(${sql.placeholder(name)})))`;

/** Newest first: {user_id, read, templates (JSON list, empty: all), before (key), limit}. */
export const listNotifications = query(
  build
    .select()
    .from(notifications)
    .where(
      and(
        ofUser,
        READ,
        among(notifications.template_id, "templates"),
        lt(notifications.key, sql.placeholder("before")),
      ),
    )
    .orderBy(desc(notifications.key))
    .limit(sql.placeholder("limit")),
);

/** Written after one: {user_id, after (key)}. */
export const listNotificationsAfter = query(
  build
    .select()
    .from(notifications)
    .where(and(ofUser, sql`${notifications.key} > ${sql.placeholder("after")}`))
    .orderBy(notifications.key)
    .limit(100),
);

/** {user_id, id}. */
export const findNotification = query(
  build
    .select()
    .from(notifications)
    .where(and(ofUser, given(notifications.id))),
);

/** {user_id}: of the newest. */
export const findNewestNotification = query(
  build.select({ key: notifications.key }).from(notifications).where(ofUser).orderBy(desc(notifications.key)).limit(1),
);

/** {user_id}. */
export const countUnread = query(
  build
    .select({ count: count().as("count") })
    .from(notifications)
    .where(and(ofUser, isNull(notifications.read_at))),
);

/** Refused as `stale` when none exists: {user_id, id, read_at}. */
export const markNotification = statement<{ user_id: string; id: string; read_at: number | null }>(
  build
    .update(notifications)
    .set({ read_at: sql`${sql.placeholder("read_at")}` })
    .where(and(ofUser, given(notifications.id))),
  { expect: 1 },
);

export const markAllNotifications = statement<{ user_id: string; read_at: number }>(
  build
    .update(notifications)
    .set({ read_at: sql`${sql.placeholder("read_at")}` })
    .where(and(ofUser, isNull(notifications.read_at))),
);

/** Not yet given to deliveries, oldest first, so many at a time. */
export const UNDISPATCHED_AT_ONCE = 100;
export const listUndispatched = query(
  build
    .select()
    .from(notifications)
    .where(isNull(notifications.dispatched_at))
    .orderBy(notifications.key)
    .limit(UNDISPATCHED_AT_ONCE),
);

export const markDispatched = statement<{ key: number; now: number }>(
  build
    .update(notifications)
    .set({ dispatched_at: sql`${sql.placeholder("now")}` })
    .where(given(notifications.key)),
);

/** One by its id, whoever's: {id}. */
export const findNotificationById = findBy(notifications, notifications.id);

export const deleteNotificationsByUser = deleteBy(notifications, notifications.user_id);

/** One that is older than `before`: {before}. */
export const findOldNotification = query(
  build
    .select({ key: notifications.key })
    .from(notifications)
    .where(lt(notifications.created_at, sql.placeholder("before")))
    .limit(1),
);

export const deleteOldNotifications = (before: number): Statement => ({
  touches: [],
  sql: `delete from notifications where key in (select key from notifications where created_at < ? order by key limit ${SLICE})`,
  rows: [[before]],
});

/** There is one where someone has more than are kept: {user_id}. */
export const findTooMany = query(
  build
    .select({ key: notifications.key })
    .from(notifications)
    .where(ofUser)
    .orderBy(desc(notifications.key))
    .limit(1)
    .offset(MAX_KEPT),
);

/** All but the newest of one person. */
export const trimNotifications = (user_id: string): Statement => ({
  touches: [],
  sql: `delete from notifications where user_id = ?1 and key <= (select key from notifications where user_id = ?1
    order by key desc limit 1 offset ${MAX_KEPT})`,
  rows: [[user_id]],
});
