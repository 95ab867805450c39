// Costs of one chat, of one user's chats, and of all chats (facts/chats 6, facts/agents D 63).
import { t } from "elysia";
import { loadAllCosts, loadChatCost, loadUserCost } from "#domain/chats/cost.ts";
import { parseCostRange } from "#domain/chats/cost-range.ts";
import { ChatCost, CostSummary, UserCosts } from "#schema/chats/chat-cost.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { pageQuery, toPage } from "../http/paging.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

const rangeQuery = {
  start_date: t.Optional(
    t.String({ description: "The start of the period: a date in UTC or a time. Default: 30 days before the end." }),
  ),
  end_date: t.Optional(t.String({ description: "The end of the period, exclusive; default: now." })),
  month: t.Optional(
    t.String({ description: "A month in UTC, as YYYY-MM. Use instead of `start_date` and `end_date`." }),
  ),
};

export const chatCost = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get("/:chat/cost", ({ caller, params }) => loadChatCost(ctx, params.chat, caller), {
      user: true,
      params: chatPath,
      response: { 200: ChatCost, ...fails(400, 401, 403, 404) },
      detail: operation({
        tags,
        operationId: "getChatCost",
        summary: "Get the cost of a chat",
        description:
          "Returns the cost of the chat's whole tree, at the prices in effect when each call was made. Includes sub-chats, titles, summaries and deleted messages. Available to the chat's owner.",
        access: "owner",
        scope: "chat:read",
        placement: "chat",
      }),
    })
    .get(
      "/cost/users",
      ({ caller, query }) => {
        const { search = "", limit, offset, ...range } = query;
        const page = toPage({ ...(limit === undefined ? {} : { limit }), ...(offset === undefined ? {} : { offset }) });
        return loadAllCosts(ctx, caller, parseCostRange(range, ctx.clock.now()), { search, ...page });
      },
      {
        user: true,
        query: t.Object({
          ...rangeQuery,
          limit: pageQuery.limit,
          offset: pageQuery.offset,
          search: t.Optional(
            t.String({ maxLength: 128, description: "Return only users whose username or name matches." }),
          ),
        }),
        response: { 200: UserCosts, ...fails(400, 401, 403) },
        detail: operation({
          tags,
          operationId: "listUserCosts",
          summary: "List spending by user",
          description: "Returns users with their spending, highest first. Available to administrators.",
          access: "admins",
          scope: "chat:read",
        }),
      },
    )
    .get(
      "/cost/:user/summary",
      ({ caller, params, query }) => loadUserCost(ctx, params.user, caller, parseCostRange(query, ctx.clock.now())),
      {
        user: true,
        params: t.Object({ user: t.String({ description: "The user's ID, username or `me`." }) }),
        query: t.Object(rangeQuery),
        response: { 200: CostSummary, ...fails(400, 401, 404) },
        detail: operation({
          tags,
          operationId: "getCostSummary",
          summary: "Get a user's spending",
          description:
            "Returns spending by model, root chat and month. Users see their own spending; administrators see everyone's.",
          access: "owner",
          scope: "chat:read",
        }),
      },
    );
