// Pins a chat's context again: the workspace's current context replaces the pinned one (facts/chats 5.5, rule CX-8).
import { AppError, forbidden } from "#base/errors.ts";
import { findWorkspaceContext } from "#db/chats/context.ts";
import { findWorkspaceAccessRow } from "#db/workspaces/workspaces.ts";
import { canUseWorkspace } from "#domain/access.ts";
import { loadOwnChat, readChat } from "#domain/chats/find.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { routes } from "../http/routes.ts";
import { changesChat, tags } from "./paths.ts";

export const chatContext = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .put(
      "/:chat/context",
      async ({ caller, params }) => {
        const { id, workspace_id } = await loadOwnChat(ctx, params.chat, caller);
        if (workspace_id === null) throw new AppError("invalid", "The chat is not bound to a workspace.");
        const workspace = await ctx.store.get(findWorkspaceAccessRow({ id: workspace_id }));
        if (!workspace || !canUseWorkspace(caller, workspace)) {
          throw forbidden("You may no longer use the workspace of this chat.");
        }
        if (!(await ctx.store.get(findWorkspaceContext({ workspace_id })))) {
          throw new AppError("conflict", "The workspace has no context yet: its agent must connect first.");
        }
        await ctx.chats.ask(id, "pinContext", {});
        return readChat(ctx, id);
      },
      {
        ...changesChat,
        detail: operation({
          tags,
          operationId: "refreshChatContext",
          summary: "Refresh the context of a chat",
          description:
            "Replaces the instructions and skills that the chat pinned when it started with the current ones of the workspace.",
          access: "owner_only",
          scope: "chat:update",
          placement: "chat",
        }),
      },
    );
