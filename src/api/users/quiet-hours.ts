// A user's quiet hours and app preferences.

import { findSelf, setPreferences, toPreferences } from "#domain/users/appearance.ts";
import { userPath } from "#domain/users/find.ts";
import { findQuietOwner, setQuietHours, toQuietHours } from "#domain/workspaces/quiet-hours.ts";
import {
  QuietHours,
  UpdateQuietHoursRequest,
  UpdateUserPreferences,
  UserPreferences,
} from "#schema/users/quiet-hours.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const userOptions = { user: true, params: userPath } as const;

export const quietHours = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/quiet-hours",
      async ({ caller, params }) => toQuietHours(await findQuietOwner(ctx, params.user, caller), ctx.clock.now()),
      {
        ...userOptions,
        response: { 200: QuietHours, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getQuietHours",
          summary: "Get a user's quiet hours",
          access: "owner",
          scope: "user:read_personal",
        }),
      },
    )
    .put(
      "/:user/quiet-hours",
      async ({ caller, params, body }) =>
        setQuietHours(ctx, await findQuietOwner(ctx, params.user, caller), body.schedule),
      {
        ...userOptions,
        body: UpdateQuietHoursRequest,
        response: { 200: QuietHours, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateQuietHours",
          summary: "Update a user's quiet hours",
          description:
            "If a template requires a stop on certain days, its workspaces stop at this time on those days. Also applies to running workspaces, but not within the next two hours.",
          example: { schedule: "CRON_TZ=Europe/Paris 0 22 * * *" },
          audit: target.writes(target.user),
          access: "owner",
          scope: "user:update_personal",
          outlivesGrant: true,
        }),
      },
    )
    .get("/:user/preferences", async ({ caller, params }) => toPreferences(await findSelf(ctx, params.user, caller)), {
      ...userOptions,
      response: { 200: UserPreferences, ...fails(401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getUserPreferences",
        summary: "Get a user's preferences",
        access: "owner_only",
        scope: "user:read_personal",
      }),
    })
    .put(
      "/:user/preferences",
      async ({ caller, params, body }) => setPreferences(ctx, await findSelf(ctx, params.user, caller), body),
      {
        ...userOptions,
        body: UpdateUserPreferences,
        response: { 200: UserPreferences, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateUserPreferences",
          summary: "Update a user's preferences",
          example: { task_notification_alert_dismissed: true },
          access: "owner_only",
          scope: "user:update_personal",
        }),
      },
    );
