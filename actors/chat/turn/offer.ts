// Decides which tools a chat's model may call, and which calls the turn rather than the client runs (facts/chats 3.5, 5.2).
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

/** Returns the chat's properties that determine its tools. */
export const toToolScope = (chat_id: string, chat: PromptChat): ChatToolContext => ({
  mode: toChatMode(chat),
  is_planning: chat.plan_mode !== null,
  has_workspace: chat.workspace_id !== null,
  plan_path: toPlanPath(chat_id),
});

export const toPromptScope = (state: ChatState): PromptChat => {
  const { owner_id, organization_id, parent_chat_id, plan_mode, workspace_id, subagent_type } = state;
  return { owner_id, organization_id, plan_mode, workspace_id, subagent_type, is_root: parent_chat_id === null };
};

/** Returns Slipway's tools, then the client's, except those with the name of one of Slipway's tools. */
export const buildToolOffer = (state: ChatState): ToolDefinition[] => {
  const scope = toToolScope(state.id, toPromptScope(state));
  const serverTools = listTools(scope).map(({ name, description, input_schema }) => ({
    name,
    description: description.trim(),
    input_schema: toPlainSchema(input_schema),
  }));
  const offersClientTools = findToolUse("dynamic", scope) === "yes";
  const clientTools = offersClientTools ? state.dynamic_tools.filter(({ name }) => !isServerTool(name)) : [];
  return [...serverTools, ...clientTools];
};

/** Returns whether the model may use the tools that its provider runs. */
export const offersProviderTools = (state: ChatState): boolean =>
  findToolUse("provider", toToolScope(state.id, toPromptScope(state))) === "yes";

/** Returns the calls without a result that the turn must run. */
export const selectTurnCalls = ({
  pending_calls,
  dynamic_tools,
}: Pick<ChatState, "pending_calls" | "dynamic_tools">): readonly PendingCall[] =>
  pending_calls.filter(
    // A tool that belongs neither to Slipway nor to the client is an MCP tool.
    ({ tool_name }) => isServerTool(tool_name) || !dynamic_tools.some(({ name }) => name === tool_name),
  );

const plainSchemas = new WeakMap<object, unknown>();

/** Returns the schema as plain JSON, without the symbols that the schema library adds. */
const toPlainSchema = (schema: object): unknown => {
  const plain = plainSchemas.get(schema) ?? JSON.parse(JSON.stringify(schema));
  plainSchemas.set(schema, plain);
  return plain;
};
