// API routes of the AI gateway: its settings, its calls, and model costs.
import { t } from "elysia";
import { readRecording } from "#domain/ai/recordings.ts";
import { getGatewaySettings, listGatewayCalls, loadAiUsage, setGatewaySettings } from "#domain/ai/settings.ts";
import { parseClockOffset, parseCostRange } from "#domain/chats/cost-range.ts";
import { AiUsage, GatewayCalls, GatewayRecording, GatewaySettings, USAGE_DIMENSIONS } from "#schema/ai/gateway.ts";
import { oneOf } from "#schema/one-of.ts";
import { writesSetting } from "../audit/setting-targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { aiBudgets } from "./budgets.ts";

const user = true;
const tags = ["AI gateway"];
const MAX_CALLS = 100;

const userQuery = t.Optional(
  t.String({ format: "uuid", description: "Only the calls of this user. Absent: your own, or everyone's for owners." }),
);

export const ai = (ctx: ApiContext) =>
  routes({ prefix: "/ai" })
    .use(callers)
    .use(aiBudgets(ctx))
    .get("/settings", ({ caller }) => getGatewaySettings(ctx, caller), {
      user,
      response: { 200: GatewaySettings, ...fails(401, 403) },
      detail: operation({
        tags,
        operationId: "getGatewaySettings",
        summary: "Get the settings of the AI gateway",
        description: "For owners of the deployment.",
        access: "admins",
        scope: "chat_config:read",
      }),
    })
    .put(
      "/settings",
      async ({ caller, body, status }) => {
        await setGatewaySettings(ctx, caller, body);
        return status(204, undefined);
      },
      {
        user,
        body: GatewaySettings,
        response: { 204: NoContent, ...fails(400, 401, 403, 413) },
        detail: operation({
          tags,
          operationId: "setGatewaySettings",
          summary: "Set up the AI gateway",
          description:
            "Replaces all settings. Callers send a Slipway token where the provider's API key would be, to `/api/v2/ai/anthropic`, `/api/v2/ai/openai/v1` or `/api/v2/ai/google`.",
          example: { enabled: true, in_workspaces: true, names: [], default_names: {} },
          audit: writesSetting("ai_gateway"),
          access: "admins",
          outlivesGrant: true,
          scope: "chat_config:update",
        }),
      },
    )
    .get(
      "/calls",
      ({ caller, query }) =>
        listGatewayCalls(ctx, caller, {
          user_id: query.user_id,
          workspace_id: query.workspace_id,
          before: query.before,
          limit: query.limit ?? MAX_CALLS,
        }),
      {
        user,
        query: t.Object({
          user_id: userQuery,
          workspace_id: t.Optional(t.String({ format: "uuid", description: "Only the calls of this workspace." })),
          before: t.Optional(t.Integer({ minimum: 1, description: "`next_before` of the previous page." })),
          limit: t.Optional(t.Integer({ minimum: 1, maximum: MAX_CALLS, description: `${MAX_CALLS} by default.` })),
        }),
        response: { 200: GatewayCalls, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "listGatewayCalls",
          summary: "List calls of the AI gateway",
          description: "Newest first.",
          access: "users",
          scope: "chat:read",
        }),
      },
    )
    .get(
      "/calls/:call/recording",
      // An ID that is not a number matches no call.
      ({ caller, params }) => readRecording(ctx, caller, /^[1-9]\d{0,15}$/.test(params.call) ? Number(params.call) : 0),
      {
        user,
        params: t.Object({ call: t.String({ description: "`id` of the call." }) }),
        response: { 200: GatewayRecording, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "getGatewayRecording",
          summary: "Get the recording of a call",
          description: "For owners of the deployment, with a key with full access. The audit log records each read.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .get(
      "/usage",
      ({ caller, query }) => {
        const { by, user_id, start_date, end_date, month } = query;
        return loadAiUsage(ctx, caller, {
          by,
          user_id,
          range: parseCostRange({ start_date, end_date, month }, ctx.clock.now()),
          offset: parseClockOffset(start_date),
        });
      },
      {
        user,
        query: t.Object({
          by: oneOf(USAGE_DIMENSIONS, "How to group usage."),
          user_id: userQuery,
          start_date: t.Optional(
            t.String({ description: "A date (UTC) or an RFC 3339 time. Default: 30 days before the end." }),
          ),
          end_date: t.Optional(t.String({ description: "Not included. Default: now." })),
          month: t.Optional(t.String({ description: "Such as 2026-11, instead of the two dates." })),
        }),
        response: { 200: AiUsage, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "getAiUsage",
          summary: "Get model usage and cost",
          description: "Counts the model calls of chats and of the gateway.",
          access: "users",
          scope: "chat:read",
        }),
      },
    );
