// Which agent of a workspace a call means: the first one unless the call names another, such as the one in a devcontainer. Only where
// there are several is the model told of the choice (rule TO-24). Used by turns, outside of the mailbox.
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import { isEdit } from "#src/tools/permission-mode.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";

const ARGUMENT = "agent";
/** Tools that work through the daemon of one agent. The desktop, plans and files that return are the workspace's own. */
const THROUGH_AGENT: ReadonlySet<string> = new Set([
  ...["read_file", "write_file", "edit_files", "attach_file"],
  ...["execute", "process_output", "process_list", "process_signal"],
]);

type Schema = { readonly properties?: Readonly<Record<string, unknown>> };
type Agent = { readonly name: string; readonly parent_id: string | null };

/** The attempt whose tools take the name of an agent, where the workspace has several now. */
export const withAgentChoice = async (store: Store, begun: StartedAttempt): Promise<StartedAttempt> => {
  const { workspace_id } = begun.about;
  if (workspace_id === null || !begun.tools.some(({ name }) => THROUGH_AGENT.has(name))) return begun;
  const workspace = await store.get(findWorkspace({ id: workspace_id }));
  const agents = workspace ? await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id })) : [];
  return agents.length < 2 ? begun : { ...begun, tools: begun.tools.map((tool) => choosing(tool, agents)) };
};

const choosing = (tool: ToolDefinition, agents: readonly Agent[]): ToolDefinition => {
  if (!THROUGH_AGENT.has(tool.name)) return tool;
  const first = agents.find(({ parent_id }) => parent_id === null);
  const inside = agents.filter(({ parent_id }) => parent_id !== null).map(({ name }) => `"${name}"`);
  const containers = inside.length === 0 ? "" : ` In containers of it are ${inside.join(", ")}.`;
  const choice = {
    type: "string",
    enum: agents.map(({ name }) => name),
    description: `Which agent of the workspace does it; "${first?.name}" when absent.${containers} Each has files and processes of its own.`,
  };
  const schema = tool.input_schema as Schema;
  return { ...tool, input_schema: { ...schema, properties: { ...schema.properties, [ARGUMENT]: choice } } };
};

/** The folder of the workspace's first agent, where edits below it need no approval; undefined where none is asked for. */
export const editedFolder = async (
  store: Store,
  { permissions, workspace_id, pending_calls }: Pick<ChatState, "permissions" | "workspace_id" | "pending_calls">,
): Promise<string | undefined> => {
  const matters = permissions?.default === "accept_edits" && pending_calls.some(({ tool_name }) => isEdit(tool_name));
  return matters ? agentFolder(store, workspace_id) : undefined;
};

/** The folder of an agent of the workspace, by its name or the first one; undefined where that is not known. */
export const agentFolder = async (
  store: Store,
  workspace_id: string | null,
  name?: string,
): Promise<string | undefined> => {
  const workspace = workspace_id === null ? undefined : await store.get(findWorkspace({ id: workspace_id }));
  const agents = workspace ? await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id })) : [];
  return chosenAgent(agents, name)?.expanded_directory || undefined;
};

/** The agent that a call names, and its arguments as the tool knows them. */
export const agentOfCall = ({
  tool_name,
  args,
}: Pick<PendingCall, "tool_name" | "args">): { readonly agent: string | undefined; readonly args: unknown } => {
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
  if (!THROUGH_AGENT.has(tool_name) || !isObject || !(ARGUMENT in args)) return { agent: undefined, args };
  const { [ARGUMENT]: agent, ...rest } = args as Record<string, unknown>;
  return typeof agent === "string" ? { agent, args: rest } : { agent: undefined, args };
};

/** The agent of this name, or the workspace's first one. Undefined when none exists. */
export const chosenAgent = <A extends Agent>(agents: readonly A[], name: string | undefined): A | undefined =>
  agents.find((one) => (name === undefined ? one.parent_id === null : one.name === name));

/** What is said of a name that no agent has. */
export const noSuchAgent = (agents: readonly Agent[], name: string): string =>
  `The workspace has no agent "${name}". It has: ${agents.map((one) => one.name).join(", ")}.`;
