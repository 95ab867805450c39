// Spend limits (facts/agents D 60 to 62): set by administrators; each user sees their own status.
import { t } from "elysia";
import { loadUsageLimitStatus, loadUsageLimits, setLimit, setUsageLimit } from "#domain/chats/usage-limits.ts";
import { PutLimit, PutUsageLimits, UsageLimitStatus, UsageLimits } from "#schema/chats/usage-limit.ts";
import * as setting from "../../audit/setting-targets.ts";
import * as target from "../../audit/targets.ts";
import type { ApiContext } from "../../context.ts";
import { callers } from "../../http/caller.ts";
import { operation } from "../../http/operation.ts";
import { fails, NoContent } from "../../http/responses.ts";
import { routes } from "../../http/routes.ts";
import { tags } from "../paths.ts";

const user = true;
const userPath = t.Object({ user: t.String({ description: "The user's ID, username or `me`." }) });
const groupPath = t.Object({
  group: t.String({
    description: "The ID of a group, or the ID or name of an organization for the group of all its members.",
  }),
});

/** Routes below `/chats/usage-limits`. */
export const chatUsageLimits = (ctx: ApiContext) =>
  routes({ prefix: "/usage-limits" })
    .use(callers)
    .get("", ({ caller }) => loadUsageLimits(ctx, caller), {
      user,
      response: { 200: UsageLimits, ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "getUsageLimits",
        summary: "Get the spend limits",
        description: "Returns the default limit and the limits of users and groups. Available to administrators.",
        access: "admins",
        scope: "chat:read",
      }),
    })
    .put(
      "",
      async ({ caller, body, status }) => {
        await setUsageLimit(ctx, caller, body);
        return status(204, undefined);
      },
      {
        user,
        body: PutUsageLimits,
        response: { 204: NoContent, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "setUsageLimits",
          summary: "Update the default spend limit",
          description:
            "Sets the limit of users without another one. A user's own limit takes precedence, then the lowest limit of the user's groups. Limits are checked before each model call and message, so concurrent calls can exceed them by their cost. Calls to models without a price are not counted.",
          audit: setting.writesSetting("usage_limit"),
          example: { spend_limit_micros: 20_000_000, period: "month" },
          access: "admins",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    )
    .get("/status", ({ caller }) => loadUsageLimitStatus(ctx, caller.user_id), {
      user,
      response: { 200: UsageLimitStatus, ...fails(401) },
      detail: operation({
        tags,
        operationId: "getUsageLimitStatus",
        summary: "Get your spend limit and spending",
        access: "users",
        scope: "chat:read",
      }),
    })
    .put(
      "/overrides/:user",
      async ({ caller, params, body, status }) => {
        await setLimit(ctx, caller, { owner: "user", named: params.user }, body.spend_limit_micros);
        return status(204, undefined);
      },
      {
        user,
        params: userPath,
        body: PutLimit,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: operation({
          tags,
          operationId: "setUserUsageLimit",
          summary: "Update a user's spend limit",
          audit: target.writes(setting.newUserLimit),
          example: { spend_limit_micros: 50_000_000 },
          access: "admins",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    )
    .delete(
      "/overrides/:user",
      async ({ caller, params, status }) => {
        await setLimit(ctx, caller, { owner: "user", named: params.user }, undefined);
        return status(204, undefined);
      },
      {
        user,
        params: userPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteUserUsageLimit",
          summary: "Delete a user's spend limit",
          audit: target.writes(setting.userLimit),
          access: "admins",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    )
    .put(
      "/group-overrides/:group",
      async ({ caller, params, body, status }) => {
        await setLimit(ctx, caller, { owner: "group", named: params.group }, body.spend_limit_micros);
        return status(204, undefined);
      },
      {
        user,
        params: groupPath,
        body: PutLimit,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 413) },
        detail: operation({
          tags,
          operationId: "setGroupUsageLimit",
          summary: "Update the spend limit of a group's members",
          description: "Sets the limit of each member. For users in several groups, the lowest limit applies.",
          audit: target.writes(setting.newGroupLimit),
          example: { spend_limit_micros: 50_000_000 },
          access: "admins",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    )
    .delete(
      "/group-overrides/:group",
      async ({ caller, params, status }) => {
        await setLimit(ctx, caller, { owner: "group", named: params.group }, undefined);
        return status(204, undefined);
      },
      {
        user,
        params: groupPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "deleteGroupUsageLimit",
          summary: "Delete a group's spend limit",
          audit: target.writes(setting.groupLimit),
          access: "admins",
          outlivesGrant: true,
          scope: "chat:update",
        }),
      },
    );
