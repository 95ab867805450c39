// Forks a chat up to a message (rules FK-1 to FK-4). An extension, for trying an alternative without losing the original.
import { AppError, forbidden, invalidField } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { canCreateChat, canDriveChat } from "#domain/access.ts";
import { findVisibleChat, readChat } from "#domain/chats/find.ts";
import { IDEMPOTENCY_HEADERS, isCreatedByRequest, parseRequestKey, toChatId } from "#domain/chats/idempotency.ts";
import { parseTitle } from "#domain/chats/input.ts";
import { Chat, ForkChat } from "#schema/chats/chat.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

export const forkChat = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .post(
      "/:chat/fork",
      async ({ caller, params, body, request, status }) => {
        const chat = await findVisibleChat(ctx, params.chat, caller);
        if (!canDriveChat(caller, chat)) throw forbidden("Only the owner of a chat can do this.");
        if (!canCreateChat(caller, chat.organization_id)) throw forbidden("You are not a member of this organization.");
        if (chat.parent_chat_id !== null) throw new AppError("invalid", "Only root chats can be copied.");
        const { message_id } = body;
        if (message_id !== undefined && message_id < 1) throw invalidField("message_id", "must be positive");
        const title = body.title === undefined ? undefined : parseTitle(body.title);
        const key = parseRequestKey(request, `fork ${chat.id}`, body);
        const id = key === undefined ? uuid() : toChatId(caller.user_id, key.key);
        if (!(await isCreatedByRequest(ctx, id, key))) {
          // The new chat is in its owner's shard.
          ctx.chats.expect(id, chat.owner_id);
          // If two identical requests race, the second returns what the first created.
          await ctx.chats
            .ask(id, "fork", { source_id: chat.id, message_id, title, request: key })
            .catch(async (error) => {
              if (!(await isCreatedByRequest(ctx, id, key))) throw error;
            });
        }
        return status(201, await readChat(ctx, id));
      },
      {
        user: true,
        params: chatPath,
        body: ForkChat,
        response: { 201: Chat, ...fails(400, 401, 403, 404, 409, 413) },
        detail: operation({
          tags,
          headers: IDEMPOTENCY_HEADERS,
          operationId: "forkChat",
          summary: "Fork a chat",
          description:
            "Creates a chat of the same owner with the history up to a message, its files, labels, model and settings. It stays idle until it gets a message. Sub-chats, queued messages and shares are not copied.",
          example: {},
          access: "owner_only",
          scope: "chat:create",
          placement: "chat",
        }),
      },
    );
