// `GET /chats/{chat}/diff`: the changes a chat has pushed, from its git host (facts/chats 6, rule PR-5).
import { findVisibleChat } from "#domain/chats/find.ts";
import { ChatDiff } from "#schema/chats/chat-diff.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";
import { chatPath, tags } from "./paths.ts";

export const chatDiff = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:chat/diff",
      async ({ caller, params }) => {
        const { id } = await findVisibleChat(ctx, params.chat, caller);
        const { row, provider, diff } = await ctx.diffs.read(id);
        const { remote_origin, branch, url } = row;
        return { chat_id: id, provider, remote_origin, branch, ...(url ? { pull_request_url: url } : {}), diff };
      },
      {
        user: true,
        params: chatPath,
        response: { 200: ChatDiff, ...fails(400, 401, 404, 503) },
        detail: operation({
          tags,
          operationId: "getChatDiff",
          summary: "Get the diff of a chat's pull request",
          description:
            "Requests the diff from the Git host with the chat owner's linked account. Returns 404 if the chat has not pushed to a host of this deployment, and 503 if the host is not responding.",
          access: "owner",
          scope: "chat:read",
          placement: "chat",
        }),
      },
    );
