// Which tools a chat's model may call, and which of its calls are answered here and not by the client (facts/chats 3.5, 5.2).

import type { ToolDefinition } from "#src/llm/model.ts";
import { isServerTool, type ToolsOf, toolsFor } from "#src/tools/registry.ts";
import type { PendingCall } from "./decision.ts";
import type { PromptOf } from "./prompt.ts";
import type { ChatState } from "./writes.ts";

/** What decides about the chat's tools. */
export const toolsOf = ({ is_root, plan_mode, workspace_id }: PromptOf): ToolsOf => ({
  ...{ is_root, is_planning: plan_mode !== null, has_workspace: workspace_id !== null },
});

export const aboutOf = (state: ChatState): PromptOf => {
  const { owner_id, organization_id, parent_chat_id, plan_mode, workspace_id } = state;
  return { owner_id, organization_id, plan_mode, workspace_id, is_root: parent_chat_id === null };
};

/** Ours first; a client's tool of the same name is not offered, and none of them while the chat plans. */
export const offeredTools = (state: ChatState): ToolDefinition[] => [
  ...toolsFor(toolsOf(aboutOf(state))).map(({ name, description, input_schema }) => ({
    ...{ name, description: description.trim(), input_schema: plain(input_schema) },
  })),
  ...(state.plan_mode === null ? state.dynamic_tools.filter(({ name }) => !isServerTool(name)) : []),
];

/** The calls without a result that the turn itself must run. */
export const callsToRun = ({ pending_calls }: Pick<ChatState, "pending_calls">): readonly PendingCall[] =>
  pending_calls.filter(({ tool_name }) => isServerTool(tool_name));

const known = new WeakMap<object, unknown>();

/** A schema as JSON, without what its library has put beside it. */
const plain = (schema: object): unknown => {
  const made = known.get(schema) ?? JSON.parse(JSON.stringify(schema));
  known.set(schema, made);
  return made;
};
