// Notifications: users' inboxes, live updates, and the delivery settings of administrators.
import { t } from "elysia";
import { readNotifierPaused } from "#db/notifications/settings.ts";
import { markAllRead, markRead, parseIds, readInbox } from "#domain/notifications/inbox.ts";
import { listKinds, sendTest, setMethod, setPaused } from "#domain/notifications/settings.ts";
import {
  DispatchMethods,
  Inbox,
  InboxChange,
  InboxEvent,
  METHODS,
  NotificationSettings,
  NotificationTemplate,
  READ_STATUSES,
  ReadMark,
} from "#schema/notifications/notification.ts";
import { oneOf } from "#schema/one-of.ts";
import { settingTarget } from "../audit/setting-targets.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent, Upgraded } from "../http/responses.ts";
import { closeWhenKeyRevoked } from "../http/revocation.ts";
import { routes } from "../http/routes.ts";
import { InboxSocket } from "./watch.ts";

const tags = ["Notifications"];
const user = true;

const idListQuery = (description: string) =>
  t.Optional(t.String({ description: `${description} Comma-separated IDs.` }));
const filterQuery = {
  templates: idListQuery("Return only these kinds of notifications."),
  targets: idListQuery("Return only notifications about all of these resources."),
  read_status: t.Optional(
    oneOf(READ_STATUSES, "Return only notifications with this status: `all` (default), `read` or `unread`."),
  ),
};

const toFilter = (query: { templates?: string; targets?: string; read_status?: "all" | "read" | "unread" }) => ({
  read: query.read_status ?? ("all" as const),
  templates: parseIds("templates", query.templates),
  targets: parseIds("targets", query.targets),
});

export const notifications = (ctx: ApiContext) =>
  routes({ prefix: "/notifications" })
    .use(callers)
    .get("/inbox", ({ caller, query }) => readInbox(ctx, caller.user_id, toFilter(query), query.starting_before), {
      user,
      query: t.Object({
        ...filterQuery,
        starting_before: t.Optional(
          t.String({ format: "uuid", description: "Return only notifications older than the one with this ID." }),
        ),
      }),
      response: { 200: Inbox, ...fails(400, 401) },
      detail: operation({
        tags,
        operationId: "listInboxNotifications",
        summary: "List notifications in your inbox",
        description: "Returns 25 notifications at a time, newest first.",
        access: "users",
        scope: "user:read_personal",
      }),
    })
    .get(
      "/inbox/watch",
      async ({ caller, query, request }) => {
        const socket = await InboxSocket.create(ctx, caller.user_id, toFilter(query));
        return ctx.sockets.upgrade(request, closeWhenKeyRevoked(ctx, caller, socket), { who: caller.user_id });
      },
      {
        user,
        query: t.Object({
          ...filterQuery,
          format: t.Optional(oneOf(["plaintext", "markdown"], "The format of the text. Always plain text.")),
        }),
        response: { 200: Upgraded, ...fails(400, 401, 503) },
        detail: operation({
          tags,
          operationId: "watchInbox",
          summary: "Watch your inbox",
          description:
            'A WebSocket of text messages `{"notification", "unread_count"}` for each new notification; without `notification` if only the count changed. A message from the client closes the connection.',
          placement: "here",
          anywhere: true,
          sends: InboxEvent,
          access: "users",
          scope: "user:read_personal",
        }),
      },
    )
    .put(
      "/inbox/mark-all-as-read",
      async ({ caller, set }) => {
        await markAllRead(ctx, caller.user_id);
        set.status = 204;
      },
      {
        user,
        response: { 204: NoContent, ...fails(401) },
        detail: operation({
          tags,
          operationId: "markInboxAsRead",
          summary: "Mark all notifications as read",
          access: "users",
          scope: "user:update_personal",
        }),
      },
    )
    .put(
      "/inbox/:notification/read-status",
      ({ caller, params, body }) => markRead(ctx, caller.user_id, params.notification, body.is_read),
      {
        user,
        params: t.Object({ notification: t.String({ format: "uuid", description: "The ID of the notification." }) }),
        body: ReadMark,
        response: { 200: InboxChange, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "setNotificationReadStatus",
          summary: "Mark a notification as read or unread",
          example: { is_read: true },
          access: "users",
          scope: "user:update_personal",
        }),
      },
    )
    .get("/settings", async () => ({ notifier_paused: await readNotifierPaused(ctx.store) }), {
      user,
      response: { 200: NotificationSettings, ...fails(401) },
      detail: operation({
        tags,
        operationId: "getNotificationSettings",
        summary: "Get whether notifications are paused",
        access: "users",
        scope: "notification:read",
      }),
    })
    .put(
      "/settings",
      async ({ caller, body }) => {
        await setPaused(ctx, caller, body.notifier_paused);
        return body;
      },
      {
        user,
        body: NotificationSettings,
        response: { 200: NotificationSettings, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "updateNotificationSettings",
          summary: "Pause or resume notifications",
          description:
            "While paused, nothing is delivered outside the server. Inboxes still receive notifications, and paused deliveries are sent after resuming.",
          audit: target.writes(settingTarget("notifications_settings", "notifier")),
          example: { notifier_paused: false },
          access: "admins",
          scope: "notification:update",
          outlivesGrant: true,
        }),
      },
    )
    .get("/templates/system", () => listKinds(ctx), {
      user,
      response: { 200: t.Array(NotificationTemplate), ...fails(401) },
      detail: operation({
        tags,
        operationId: "listNotificationTemplates",
        summary: "List kinds of notifications",
        access: "users",
        scope: "notification:read",
      }),
    })
    .put(
      "/templates/:notification_template/method",
      ({ caller, params, body }) => setMethod(ctx, caller, params.notification_template, body.method),
      {
        user,
        params: t.Object({
          notification_template: t.String({ format: "uuid", description: "The ID of the kind of notification." }),
        }),
        body: t.Object({ method: oneOf(["", ...METHODS]) }),
        response: { 200: NotificationTemplate, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "setNotificationMethod",
          summary: "Update the delivery method of a kind of notification",
          example: { method: "smtp" },
          audit: target.writes(target.notificationKind),
          access: "admins",
          scope: "notification:update",
          outlivesGrant: true,
        }),
      },
    )
    .get(
      "/dispatch-methods",
      () => ({ available: ["inbox", ...(ctx.mailer.isSetUp ? ["smtp"] : []), "webpush"], default: "inbox" }),
      {
        user,
        response: { 200: DispatchMethods, ...fails(401) },
        detail: operation({
          tags,
          operationId: "listDispatchMethods",
          summary: "List delivery methods",
          access: "users",
          scope: "notification:read",
        }),
      },
    )
    .post(
      "/test",
      async ({ caller, set }) => {
        await sendTest(ctx, caller.user_id);
        set.status = 204;
      },
      {
        user,
        response: { 204: NoContent, ...fails(401) },
        detail: operation({
          tags,
          operationId: "sendTestNotification",
          summary: "Send a test notification",
          description: "Sends a test notification to your inbox and all enabled delivery methods.",
          access: "users",
          scope: "user:update_personal",
        }),
      },
    );
