// Reports for the Insights page that upstream clients don't know: build statistics and chat usage.
import { t } from "elysia";
import { forbidden } from "#base/errors.ts";
import { canReadAudit } from "#domain/access.ts";
import { loadBuildInsights } from "#domain/insights/builds.ts";
import { loadChatInsights } from "#domain/insights/chats.ts";
import { parseRange } from "#domain/insights/range.ts";
import { BuildInsights, ChatInsights } from "#schema/insights.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { interval, parseInterval, rangeQuery } from "./query.ts";
import { rejectUnknownParameters, resolveTemplates } from "./who.ts";

const tags = ["Insights"];
const buildsQuery = { ...rangeQuery, interval };
const { template_ids: _, ...chatsRange } = rangeQuery;
const chatsQuery = { ...chatsRange, interval };

export const insightFigures = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/builds",
      async ({ caller, request, query }) => {
        rejectUnknownParameters(request, buildsQuery);
        const range = parseRange(query, ctx.clock.now());
        const interval = parseInterval(query.interval, caller) ?? "day";
        const templates = await resolveTemplates(ctx, request, caller);
        return loadBuildInsights(ctx, range, interval, templates);
      },
      {
        user: true,
        query: t.Object(buildsQuery),
        response: { 200: BuildInsights, ...fails(400, 401, 403, 404, 503) },
        detail: operation({
          tags,
          operationId: "getBuildInsights",
          summary: "Get build insights",
          description:
            "Returns figures for builds that started workspaces and ended in the range: their number, the number of failures, and the duration of successful ones, by day or week and by template. Requires access to the insights of every requested template.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    )
    .get(
      "/chats",
      ({ caller, request, query }) => {
        rejectUnknownParameters(request, chatsQuery);
        const range = parseRange(query, ctx.clock.now());
        const interval = parseInterval(query.interval, caller) ?? "day";
        if (!canReadAudit(caller)) throw forbidden("Only owners and auditors can see what chats have used.");
        return loadChatInsights(ctx, range, interval);
      },
      {
        user: true,
        query: t.Object(chatsQuery),
        response: { 200: ChatInsights, ...fails(400, 401, 403, 503) },
        detail: operation({
          tags,
          operationId: "getChatInsights",
          summary: "Get chat insights",
          description:
            "Returns the users, root chats, tokens and cost of model calls in the range, by day or week and by model. Costs use the prices in effect when each call was made.",
          access: "admins",
          scope: "template:view_insights",
        }),
      },
    );
