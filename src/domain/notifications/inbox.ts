// A user's inbox of notifications, which other users cannot read (rule NO-10).
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, invalid, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import { CommitError } from "#db/engine/store.ts";
import {
  countUnread,
  findNotification,
  listNotifications,
  markAllNotifications,
  markNotification,
  type NotificationRow,
} from "#db/notifications/notifications.ts";
import type { Inbox, InboxNotification } from "#schema/notifications/notification.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { DomainContext } from "../context.ts";
import { findUserInPath } from "../users/find.ts";

const PAGE_SIZE = 25;

export const presentNotification = (row: NotificationRow): InboxNotification => ({
  id: row.id,
  user_id: row.user_id,
  template_id: row.template_id,
  targets: row.targets,
  title: row.title,
  content: row.content,
  icon: row.icon,
  actions: row.actions,
  read_at: row.read_at === null ? null : toRfc3339(row.read_at),
  created_at: toRfc3339(row.created_at),
});

export type InboxFilter = {
  readonly read: "all" | "read" | "unread";
  /** IDs; an empty list means all. */
  readonly templates: readonly string[];
  readonly targets: readonly string[];
};

/** Returns whether the notification matches the filter. */
export const isWanted = (row: NotificationRow, { read, templates, targets }: InboxFilter): boolean =>
  (read === "all" || (row.read_at === null) === (read === "unread")) &&
  (templates.length === 0 || templates.includes(row.template_id)) &&
  targets.every((one) => row.targets.includes(one));

type Deps = Pick<DomainContext, "store" | "clock" | "topics">;

export const loadUnreadCount = async ({ store }: Pick<Deps, "store">, user_id: string): Promise<number> =>
  (await store.get(countUnread({ user_id })))?.count ?? 0;

/** Returns one page, newest first, older than `before`, which must be an ID in the caller's own inbox. Rejects with 400 otherwise. */
export const readInbox = async (
  ctx: Deps,
  user_id: string,
  filter: InboxFilter,
  before: string | undefined,
): Promise<Inbox> => {
  let from = Number.MAX_SAFE_INTEGER;
  if (before) {
    const start = await ctx.store.get(findNotification({ user_id, id: before.toLowerCase() }));
    if (!start) {
      throw invalid("Query parameters have invalid values.", [
        { field: "starting_before", detail: "is not one of your notifications" },
      ]);
    }
    from = start.key;
  }
  const found: NotificationRow[] = [];
  const templates = JSON.stringify(filter.templates);
  for (;;) {
    const rows = await ctx.store.all(
      listNotifications({ user_id, read: filter.read, templates, before: from, limit: PAGE_SIZE }),
    );
    found.push(...rows.filter((row) => isWanted(row, filter)));
    from = rows.at(-1)?.key ?? 0;
    if (rows.length < PAGE_SIZE || found.length >= PAGE_SIZE) break;
  }
  return {
    notifications: found.slice(0, PAGE_SIZE).map(presentNotification),
    unread_count: await loadUnreadCount(ctx, user_id),
  };
};

/** Rejects with 404 for an ID that is not in the caller's inbox. */
export const markRead = async (
  ctx: Deps,
  user_id: string,
  id: string,
  is_read: boolean,
): Promise<{ notification: InboxNotification; unread_count: number }> => {
  const row = await ctx.store.get(findNotification({ user_id, id: id.toLowerCase() }));
  if (!row) throw notFound();
  const read_at = is_read ? (row.read_at ?? ctx.clock.now()) : null;
  if (read_at !== row.read_at) {
    await ctx.store.commit([markNotification({ user_id, id: row.id, read_at })]).catch((error) => {
      throw error instanceof CommitError && error.reason === "stale" ? notFound() : error;
    });
    ctx.topics.publish("inbox", user_id, {});
  }
  return { notification: presentNotification({ ...row, read_at }), unread_count: await loadUnreadCount(ctx, user_id) };
};

export const markAllRead = async (ctx: Deps, user_id: string): Promise<void> => {
  await ctx.store.commit([markAllNotifications({ user_id, read_at: ctx.clock.now() })]);
  ctx.topics.publish("inbox", user_id, {});
};

/** Parses the IDs of a query, repeated or comma-separated. Rejects with 400 for invalid IDs. */
export const parseIds = (field: string, text: string | undefined): string[] => {
  const ids = (text ?? "")
    .split(",")
    .map((one) => one.trim().toLowerCase())
    .filter((one) => one !== "");
  if (ids.every(isUuid)) return ids;
  throw invalid("Query parameters have invalid values.", [{ field, detail: "must be ids" }]);
};

/**
 * Returns the user whose notifications the path names, which must be the caller. Rejects with 404 for an invisible user and with 403 for
 * another user.
 */
export const findNotifiedUser = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<string> => {
  const { id } = await findUserInPath(ctx.store, text, caller);
  if (id !== caller.user_id) throw forbidden("You can change only your own notification settings.");
  return id;
};
