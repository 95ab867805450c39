// Permanently deletes a chat with its sub-chats, history and files (rules DL-1 to DL-4). An extension: upstream only archives chats and
// deletes them when they expire (facts/chats 4.16).
import { readChat } from "#actors/chat/storage/read.ts";
import { toPromptScope } from "#actors/chat/turn/offer.ts";
import { AppError, conflict } from "#base/errors.ts";
import { findChangeableChat } from "#domain/chats/find.ts";
import * as target from "../audit/targets.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails, NoContent } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

export const deleteChat = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .delete(
      "/:chat",
      async ({ caller, params, set }) => {
        const { id, archived, parent_chat_id } = await findChangeableChat(ctx, params.chat, caller);
        if (parent_chat_id !== null)
          throw new AppError("invalid", "Only root chats can be deleted; sub-chats go with them.");
        // Archived first, so that nothing new starts in it. If a crash interrupts the deletion, the archived chat is found and deleted
        // later.
        const chat = await readChat(ctx.store, id);
        if (!archived) await ctx.chats.ask(id, "change", { archived: true, patch: {}, pin: null });
        const outcome = await ctx.chats.ask(id, "purge", { before: Number.MAX_SAFE_INTEGER });
        if (outcome === "stale") throw conflict("The chat was restored in the meantime.");
        if (chat) ctx.generations.deleteFiles({ ...toPromptScope(chat), chat_id: id });
        set.status = 204;
      },
      {
        user: true,
        params: chatPath,
        response: { 204: NoContent, ...fails(400, 401, 403, 404, 409) },
        detail: operation({
          tags,
          operationId: "deleteChat",
          summary: "Delete a chat",
          description:
            "Permanently deletes the chat with its sub-chats, history and files, and disconnects its followers. Returns 409 while the chat or one of its sub-chats is active: interrupt it first.",
          audit: target.deletes(target.chat),
          access: "owner",
          scope: "chat:delete",
          placement: "chat",
        }),
      },
    );
