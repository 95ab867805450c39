// Decides whether a root chat may start a sub-chat, and what the sub-chat inherits (facts/chats 5.9). Pure. Used by the root's actor.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { SubagentType } from "#src/tools/subagents/agents.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { CreateChat } from "../messages.ts";

/** Maximum sub-chats of a chat, including finished ones, since they can be continued. */
export const MAX_SUBAGENTS = 100;

export type SpawnSubagent = {
  /** The sub-chat's ID, which stays the same when the call is run again. */
  readonly id: string;
  readonly call: Pick<PendingCall, "message_id" | "tool_call_id">;
  readonly type: SubagentType;
  readonly content: readonly MessagePart[];
  /** As in `NewMessage`. */
  readonly custom_prompt?: string | null;
  readonly title: string;
  readonly model_config_id: string;
  readonly reasoning_effort: string;
};

/** stale: the call is obsolete and must have no effect. */
export type SpawnResult = "done" | "stale" | "full" | "planning";

/** Returns why the sub-chat may not be created, or undefined. `count`: existing sub-chats. */
export const findSpawnRefusal = (
  root: ChatState,
  { call, type }: SpawnSubagent,
  count: number,
): SpawnResult | undefined => {
  const isPending = root.pending_calls.some(
    ({ message_id, tool_call_id }) => message_id === call.message_id && tool_call_id === call.tool_call_id,
  );
  if (!isPending || root.archived || root.status !== "running" || root.parent_chat_id !== null) return "stale";
  if (root.plan_mode !== null && type !== "explore") return "planning";
  return count >= MAX_SUBAGENTS ? "full" : undefined;
};

/** The sub-chat inherits the root's workspace, MCP servers, owner, permissions and plan mode, but not its messages or the client's tools. */
export const toCreateSubagent = (root: ChatState, input: SpawnSubagent): CreateChat => ({
  chat: {
    id: input.id,
    parent_chat_id: root.id,
    root_chat_id: root.id,
    subagent_type: input.type,
    organization_id: root.organization_id,
    owner_id: root.owner_id,
    workspace_id: root.workspace_id,
    last_model_config_id: input.model_config_id,
    last_reasoning_effort: input.reasoning_effort,
    title: input.title,
    client_type: root.client_type,
    plan_mode: root.plan_mode,
    labels: {},
    mcp_server_ids: root.mcp_server_ids,
    permissions: root.permissions,
    dynamic_tools: [],
  },
  messages: [
    {
      role: "user",
      visibility: "both",
      content: input.content,
      custom_prompt: input.custom_prompt ?? null,
      created_by: root.owner_id,
      model_config_id: input.model_config_id,
      usage: null,
    },
  ],
});
