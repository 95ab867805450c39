// Decides which tools a chat's model may call, and which of its calls the server rather than the client answers (facts/chats 3.5, 5.2).

import type { ToolDefinition } from "#src/llm/model.ts";
import { type ChatMode, toPlanPath } from "#src/tools/available.ts";
import { type ChatToolContext, findToolUse, isServerTool, listTools } from "#src/tools/registry.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { PromptChat } from "../prompt/prompt.ts";

/** A sub-chat in plan mode may only explore. */
export const toChatMode = ({ is_root, plan_mode, subagent_type }: PromptChat): ChatMode => {
  if (is_root) return plan_mode === null ? "root" : "plan";
  return plan_mode === null ? (subagent_type ?? "general") : "explore";
};

/** Returns the properties that decide about the chat's tools. */
export const toToolScope = (chat_id: string, about: PromptChat): ChatToolContext => ({
  mode: toChatMode(about),
  has_workspace: about.workspace_id !== null,
  plan_path: toPlanPath(chat_id),
});

export const toPromptScope = (state: ChatState): PromptChat => {
  const { owner_id, organization_id, parent_chat_id, plan_mode, workspace_id, subagent_type } = state;
  return { owner_id, organization_id, plan_mode, workspace_id, subagent_type, is_root: parent_chat_id === null };
};

/** Returns the server's tools, then the client's. Omits a client's tool with the name of a server's tool, and all of them in plan mode. */
export const buildToolOffer = (state: ChatState): ToolDefinition[] => [
  ...listTools(toToolScope(state.id, toPromptScope(state))).map(({ name, description, input_schema }) => ({
    name,
    description: description.trim(),
    input_schema: toPlainSchema(input_schema),
  })),
  ...(findToolUse("dynamic", toToolScope(state.id, toPromptScope(state))) === "yes"
    ? state.dynamic_tools.filter(({ name }) => !isServerTool(name))
    : []),
];

/** Returns whether provider-executed tools may be offered, if the model's options request them. */
export const offersProviderTools = (state: ChatState): boolean =>
  findToolUse("provider", toToolScope(state.id, toPromptScope(state))) === "yes";

/** Returns the calls without a result that the turn must run. */
export const selectTurnCalls = ({
  pending_calls,
  dynamic_tools,
}: Pick<ChatState, "pending_calls" | "dynamic_tools">): readonly PendingCall[] =>
  pending_calls.filter(
    // A tool of neither the server nor the client belongs to an MCP server.
    ({ tool_name }) => isServerTool(tool_name) || !dynamic_tools.some(({ name }) => name === tool_name),
  );

const plainSchemas = new WeakMap<object, unknown>();

/** Returns a schema as JSON, without its library's metadata. */
const toPlainSchema = (schema: object): unknown => {
  const plain = plainSchemas.get(schema) ?? JSON.parse(JSON.stringify(schema));
  plainSchemas.set(schema, plain);
  return plain;
};
