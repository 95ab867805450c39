// Connects to the daemon of a chat's workspace over a WebSocket, and checks who may use it through the chat (facts/chats 2.11, 2.12). Used
// by the git and desktop streams. All checks run before the caller's own request is upgraded.
import { t } from "elysia";
import { findChosenAgent, formatUnknownAgent } from "#actors/chat/turn/agent-choice.ts";
import { forbidden, invalid, invalidField } from "#base/errors.ts";
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { ChatAccessRow } from "#db/chats/chats.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import { canUseWorkspace } from "#domain/access.ts";
import { makeChatAccess } from "#domain/chats/find.ts";
import { makeWorkspaceAccess } from "#domain/live-access.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";
import { closeWhenAccessLost } from "../http/revocation.ts";
import type { SocketHandler } from "../http/socket.ts";

/** The `agent` query parameter of a chat's sockets. */
export const agentQuery = t.Object({
  agent: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 64,
      description: "The name of the agent; default: the workspace's first agent.",
    }),
  ),
});

/**
 * Returns the agent of the chat's workspace, by name or the first one. Rejects with 400 when none exists, and with 403 for callers who can
 * read the chat but not use the workspace.
 */
export const findAgentOfChat = async (
  { store }: Pick<ApiContext, "store">,
  chat: ChatAccessRow,
  caller: UserCaller,
  name?: string,
): Promise<{ agent_id: string; workspace_id: string }> => {
  if (chat.workspace_id === null) throw invalid("The chat has no workspace.");
  const workspace = await store.get(findWorkspace({ id: chat.workspace_id }));
  if (!workspace || workspace.deleted) throw invalid("The workspace of the chat was deleted.");
  if (!canUseWorkspace(caller, workspace)) throw forbidden("You may not use the workspace of this chat.");
  if (workspace.dormant_at !== null) throw invalid("The workspace of the chat is dormant. Wake it up first.");
  const agents = await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id }));
  const agent = findChosenAgent(agents, name);
  if (!agent && name !== undefined && agents.length > 0) throw invalidField("agent", formatUnknownAgent(agents, name));
  if (!agent) throw invalid(`The workspace of the chat has no agent: it is ${workspace.status}.`);
  return { agent_id: agent.id, workspace_id: workspace.id };
};

/** Returns a handler that closes its socket when the caller loses access to the chat or its workspace. */
export const closeWhenChatUnusable = (
  ctx: ApiContext,
  caller: UserCaller,
  chat: ChatAccessRow,
  handler: SocketHandler,
): SocketHandler => {
  const workspaceUse = makeWorkspaceAccess(ctx, chat.workspace_id ?? "", canUseWorkspace);
  return closeWhenAccessLost(
    ctx,
    caller,
    makeChatAccess(ctx, chat),
    closeWhenAccessLost(ctx, caller, workspaceUse, handler),
  );
};

/** Upgrades the request to `stream` for as long as the chat is usable. Closes a stream that fails to start. */
export const upgradeToStream = (
  ctx: ApiContext,
  request: Request,
  caller: UserCaller,
  chat: ChatAccessRow,
  stream: SocketHandler & { close(): void },
): Response | undefined => {
  try {
    return ctx.sockets.upgrade(request, closeWhenChatUnusable(ctx, caller, chat, stream), { who: caller.user_id });
  } catch (error) {
    stream.close();
    throw error;
  }
};
