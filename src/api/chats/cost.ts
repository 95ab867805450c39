// What a chat with all its sub-chats has cost, from the usage that is stored with messages, those that have left the history included.
// Models have no prices here, so every call is unpriced (facts/chats 6).
import { Elysia } from "elysia";
import { countUsage } from "#db/chats/messages.ts";
import { changeableChat } from "#domain/chats/find.ts";
import { ChatCost } from "#schema/chat-cost.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { fails } from "../http/responses.ts";
import { chatPath, tags } from "./paths.ts";

export const chatCost = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/:chat/cost",
    async ({ caller, params }) => {
      const { id, parent_chat_id } = await changeableChat(ctx, params.chat, caller);
      const [found] = await ctx.store.scan(countUsage({ root: parent_chat_id ?? id }));
      const request_count = found?.count ?? 0;
      return { chat_id: id, total_cost_micros: 0, request_count, unpriced_request_count: request_count };
    },
    {
      user: true,
      params: chatPath,
      response: { 200: ChatCost, ...fails(400, 401, 403, 404) },
      detail: {
        tags,
        summary: "See what a chat has cost",
        description: "The whole tree of the chat's root, deleted messages included. For its owner.",
      },
    },
  );
