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
  t.String({
    format: "uuid",
    description: "Return only calls of this user. If absent, your own calls or, for owners, all calls.",
  }),
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
        summary: "Get the AI gateway settings",
        description: "Available to deployment owners.",
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
          summary: "Update the AI gateway settings",
          description:
            "Replaces all settings. Callers send a Slipway token in place of the provider's API key, to `/api/v2/ai/anthropic`, `/api/v2/ai/openai/v1` or `/api/v2/ai/google`.",
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
          workspace_id: t.Optional(t.String({ format: "uuid", description: "Return only calls of this workspace." })),
          before: t.Optional(
            t.Integer({ minimum: 1, description: "The value of `next_before` from the previous page." }),
          ),
          limit: t.Optional(
            t.Integer({
              minimum: 1,
              maximum: MAX_CALLS,
              description: `The maximum number of calls to return; default ${MAX_CALLS}.`,
            }),
          ),
        }),
        response: { 200: GatewayCalls, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "listGatewayCalls",
          summary: "List AI gateway calls",
          description: "Returns calls, newest first.",
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
        params: t.Object({ call: t.String({ description: "The `id` of the call." }) }),
        response: { 200: GatewayRecording, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "getGatewayRecording",
          summary: "Get the recording of an AI gateway call",
          description:
            "Available to deployment owners, with a key that has full access. Each read is recorded in the audit log.",
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
          by: oneOf(USAGE_DIMENSIONS, "How to group the usage."),
          user_id: userQuery,
          start_date: t.Optional(
            t.String({
              description:
                "The start of the period: a date in UTC or an RFC 3339 time. Default: 30 days before the end.",
            }),
          ),
          end_date: t.Optional(t.String({ description: "The end of the period, exclusive; default: now." })),
          month: t.Optional(
            t.String({ description: "A month such as 2026-11. Use instead of `start_date` and `end_date`." }),
          ),
        }),
        response: { 200: AiUsage, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "getAiUsage",
          summary: "Get model usage and cost",
          description: "Returns the usage and cost of model calls from chats and the AI gateway.",
          access: "users",
          scope: "chat:read",
        }),
      },
    );
