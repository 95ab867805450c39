// The ledger of lifecycle hooks, for site owners: requests to consumers and their decisions. No route can change it.
import { t } from "elysia";
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, invalidField } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import {
  findHookDispatch,
  type HookDispatchRow,
  listHookDispatches,
  listHookDispatchesOfChat,
} from "#db/hook-dispatches.ts";
import { isOwner } from "#domain/access.ts";
import { presentHookConsumer, tryHookConsumer } from "#domain/administration/hook-consumer.ts";
import { HookConsumer, type HookDispatch, HookDispatches, TriedHookConsumer } from "#schema/chats/hook-dispatch.ts";
import { DECISIONS, FAILURES, HOOK_EVENTS } from "#src/hooks/protocol.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 200;
const RESULTS: readonly string[] = [...DECISIONS, ...FAILURES];
const EVENTS: readonly string[] = HOOK_EVENTS;

type Query = { event?: string; result?: string; chat_id?: string; after_id?: string; limit?: number };

export const hooks = (ctx: ApiContext) =>
  routes({ prefix: "/hooks" })
    .use(callers)
    .use(consumerRoutes(ctx))
    .get(
      "/dispatches",
      async ({ caller, query }) => {
        if (!isOwner(caller)) throw forbidden("Only the site's owner may read it.");
        const { limit, ...filter } = await loadFilter(ctx, query);
        const listRows = filter.chat_id === null ? listHookDispatches : listHookDispatchesOfChat;
        const rows = await ctx.store.scan(listRows({ ...filter, limit: limit + 1 }));
        return { dispatches: rows.slice(0, limit).map(presentDispatch), has_more: rows.length > limit };
      },
      {
        user: true,
        query: t.Object({
          event: t.Optional(t.String({ description: "Return only dispatches for this event." })),
          result: t.Optional(t.String({ description: "Return only dispatches with this result." })),
          chat_id: t.Optional(t.String({ description: "Return only dispatches of this chat." })),
          after_id: t.Optional(t.String({ description: "Continue after the dispatch with this ID." })),
          limit: t.Optional(
            t.Integer({ description: "The maximum number of dispatches to return, 1 to 200; default 50." }),
          ),
        }),
        response: { 200: HookDispatches, ...fails(400, 401, 403) },
        detail: operation({
          tags: ["Hooks"],
          operationId: "listHookDispatches",
          summary: "List lifecycle hook dispatches",
          description:
            "Returns dispatches, newest first. Request and response bodies are stored only with the setting `hook_ledger_contents` and deleted with their chat; everything else is deleted after `hook_ledger_days`.",
          access: "admins",
          scope: "all",
        }),
      },
    );

/** Routes about the consumer, which is configured in the server's settings. */
const consumerRoutes = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/consumer",
      ({ caller }) => {
        if (!isOwner(caller)) throw forbidden("Only the site's owner may see it.");
        return presentHookConsumer(ctx);
      },
      {
        user: true,
        response: { 200: HookConsumer, ...fails(401, 403) },
        detail: operation({
          tags: ["Hooks"],
          operationId: "getHookConsumer",
          summary: "Get the lifecycle hook consumer",
          description: "Returns the configuration of the consumer. The secret is never returned.",
          access: "admins",
          scope: "all",
        }),
      },
    )
    .post(
      "/consumer/try",
      ({ caller }) => {
        if (!isOwner(caller)) throw forbidden("Only the site's owner may try it.");
        return tryHookConsumer(ctx);
      },
      {
        user: true,
        response: { 200: TriedHookConsumer, ...fails(400, 401, 403, 409) },
        detail: operation({
          tags: ["Hooks"],
          operationId: "tryHookConsumer",
          summary: "Test the lifecycle hook consumer",
          description:
            "Sends one signed test event. The response has no effect. Returns 409 if no consumer is configured.",
          access: "admins",
          scope: "all",
        }),
      },
    );

const loadFilter = async ({ store }: ApiContext, query: Query) => {
  const { event = null, result = null, chat_id = null, after_id, limit = DEFAULT_PAGE_SIZE } = query;
  if (event !== null && !EVENTS.includes(event)) throw invalidField("event", `must be one of ${EVENTS.join(", ")}`);
  if (result !== null && !RESULTS.includes(result))
    throw invalidField("result", `must be one of ${RESULTS.join(", ")}`);
  if (chat_id !== null && !isUuid(chat_id)) throw invalidField("chat_id", "must be a UUID");
  if (limit < 1 || limit > MAX_PAGE_SIZE) throw invalidField("limit", `must be 1 to ${MAX_PAGE_SIZE}`);
  const after = after_id === undefined ? undefined : await store.get(findHookDispatch({ id: after_id.toLowerCase() }));
  if (after_id !== undefined && !after) throw invalidField("after_id", "names no dispatch");
  const before = after?.key ?? Number.MAX_SAFE_INTEGER;
  return { event, result, chat_id: chat_id?.toLowerCase() ?? null, before, limit };
};

const presentDispatch = ({
  key: _,
  created_at,
  tool_name,
  request,
  response,
  ...row
}: HookDispatchRow): HookDispatch => ({
  ...row,
  created_at: toRfc3339(created_at),
  ...(tool_name === null ? {} : { tool_name }),
  ...(request === null ? {} : { request }),
  ...(response === null ? {} : { response }),
});
