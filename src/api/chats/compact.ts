// Compacts or clears the history from which a chat's model continues (rules CM-8 to CM-10).
import { admitInstructions } from "#actors/chat/hooks/prompts.ts";
import { notFound } from "#base/errors.ts";
import { findChat } from "#db/chats/chats.ts";
import { loadOwnChat, readChat } from "#domain/chats/find.ts";
import { checkUsageLimit } from "#domain/chats/usage-limits.ts";
import { Chat, CompactChat } from "#schema/chats/chat.ts";
import { LimitReached } from "#schema/chats/usage-limit.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { changesChat, chatPath, tags } from "./paths.ts";

export const compactChat = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:chat/compact",
      async ({ caller, params, body }) => {
        const { id, owner_id } = await loadOwnChat(ctx, params.chat, caller);
        await checkUsageLimit(ctx, owner_id);
        const guidance = body.instructions?.trim() ?? "";
        const request = { instructions: guidance, context: "", notice: "" };
        if (guidance === "" || ctx.hooks.isOff) {
          await ctx.chats.ask(id, "compact", request);
          return readChat(ctx, id);
        }
        // A request that would be rejected is rejected before any hook is called about its instructions.
        await ctx.chats.ask(id, "check", { type: "compact", request });
        const chat = await ctx.store.get(findChat({ id }));
        if (!chat) throw notFound();
        await ctx.chats.ask(id, "compact", await admitInstructions(ctx, chat, guidance));
        return readChat(ctx, id);
      },
      {
        user: true,
        params: chatPath,
        body: CompactChat,
        response: { 200: Chat, ...fails(400, 401, 403, 404, 413, 502), 409: LimitReached },
        detail: operation({
          tags,
          operationId: "compactChat",
          summary: "Compact a chat",
          description:
            "Runs a turn in which a model summarizes the history for itself. Users still see all messages. `instructions` guide the summary. Returns 409 while the chat is busy, or if there are no new responses since the last summary. If the summary fails, the chat has an error and the history is unchanged.",
          example: { instructions: "Keep the names of files." },
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    )
    .post(
      "/:chat/clear",
      async ({ caller, params }) => {
        const { id } = await loadOwnChat(ctx, params.chat, caller);
        await ctx.chats.ask(id, "clear", {});
        return readChat(ctx, id);
      },
      {
        ...changesChat,
        detail: operation({
          tags,
          operationId: "clearChat",
          summary: "Clear the context of a chat",
          description:
            "Hides the earlier messages from the model. Users still see them, and editing an earlier message restores it for the model. Returns 409 while the chat is busy or has queued messages, or if there is nothing to clear.",
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    );
