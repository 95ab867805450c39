// A user's own notification preferences and push subscriptions.
import { t } from "elysia";
import { findNotifiedUser } from "#domain/notifications/inbox.ts";
import { changePreferences, loadPreferences, sendTest } from "#domain/notifications/settings.ts";
import { subscribe, unsubscribe } from "#domain/notifications/webpush.ts";
import { userPath } from "#domain/users/find.ts";
import {
  NotificationPreference,
  UpdatePreferences,
  WebpushEndpoint,
  WebpushSubscription,
} from "#schema/notifications/notification.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { ANY_ID } from "../http/document/example-ids.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Notifications"];
const userOptions = { user: true, params: userPath } as const;

export const notificationsOfUser = (ctx: ApiContext) =>
  routes({ prefix: "/users" })
    .use(callers)
    .get(
      "/:user/notifications/preferences",
      async ({ caller, params }) => loadPreferences(ctx, await findNotifiedUser(ctx, params.user, caller)),
      {
        ...userOptions,
        response: { 200: t.Array(NotificationPreference), ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listNotificationPreferences",
          summary: "List your notification preferences",
          access: "owner_only",
          scope: "user:read_personal",
        }),
      },
    )
    .put(
      "/:user/notifications/preferences",
      async ({ caller, params, body }) =>
        changePreferences(ctx, await findNotifiedUser(ctx, params.user, caller), body.template_disabled_map),
      {
        ...userOptions,
        body: UpdatePreferences,
        response: { 200: t.Array(NotificationPreference), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateNotificationPreferences",
          summary: "Update your notification preferences",
          description: "Omitted kinds are unchanged.",
          example: { template_disabled_map: { [ANY_ID]: true } },
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    )
    .post(
      "/:user/webpush/subscription",
      async ({ caller, params, body, set }) => {
        await subscribe(ctx, await findNotifiedUser(ctx, params.user, caller), caller, body);
        set.status = 204;
      },
      {
        ...userOptions,
        body: WebpushSubscription,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "createWebpushSubscription",
          summary: "Subscribe a browser to push notifications",
          description:
            "Send the subscription that the browser returned from `pushManager.subscribe` with the `webpush_public_key` of `GET /api/v2/buildinfo`. It ends with the session that created it. API tokens and applications can't create one.",
          example: {
            endpoint: "https://push.example.com/1",
            auth_key: "from the browser",
            p256dh_key: "from the browser",
          },
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    )
    .delete(
      "/:user/webpush/subscription",
      async ({ caller, params, body, set }) => {
        await unsubscribe(ctx, await findNotifiedUser(ctx, params.user, caller), body.endpoint);
        set.status = 204;
      },
      {
        ...userOptions,
        body: WebpushEndpoint,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteWebpushSubscription",
          summary: "Unsubscribe a browser",
          example: { endpoint: "https://push.example.com/1" },
          access: "owner_only",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    )
    .post(
      "/:user/webpush/test",
      async ({ caller, params, set }) => {
        await sendTest(ctx, await findNotifiedUser(ctx, params.user, caller));
        set.status = 204;
      },
      {
        ...userOptions,
        response: { 204: NoContent, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "sendTestWebpush",
          summary: "Send a test push notification",
          access: "owner_only",
          scope: "user:update_personal",
        }),
      },
    );
