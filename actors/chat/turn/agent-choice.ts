// Chooses the workspace agent that a tool call goes to: the first one, unless the call names another, for example one in a devcontainer.
// Tools have a parameter for the agent's name only if the workspace has several agents (rule TO-24).
import { listAgentsOfBuild } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { ToolDefinition } from "#src/llm/model.ts";
import { getCommand, isEdit } from "#src/tools/permission-mode.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { PendingCall } from "../machine/decision.ts";
import type { StartedAttempt } from "../messages.ts";

const AGENT_PARAMETER = "agent";
/** Tools that work with the files or processes of one agent. */
const AGENT_TOOLS: ReadonlySet<string> = new Set([
  ...["read_file", "write_file", "edit_files", "attach_file"],
  ...["execute", "process_output", "process_list", "process_signal"],
]);

type Schema = { readonly properties?: Readonly<Record<string, unknown>> };
type Agent = { readonly name: string; readonly parent_id: string | null };

/** Adds an agent parameter to the tools of the attempt if the workspace has several agents. */
export const offerAgentChoice = async (store: Store, attempt: StartedAttempt): Promise<StartedAttempt> => {
  if (!attempt.tools.some(({ name }) => AGENT_TOOLS.has(name))) return attempt;
  const agents = await listAgents(store, attempt.chat.workspace_id);
  if (agents.length < 2) return attempt;
  return { ...attempt, tools: attempt.tools.map((tool) => withAgentParameter(tool, agents)) };
};

const listAgents = async (store: Store, workspace_id: string | null) => {
  const workspace = workspace_id === null ? undefined : await store.get(findWorkspace({ id: workspace_id }));
  return workspace ? await store.all(listAgentsOfBuild({ build_id: workspace.latest_build_id })) : [];
};

const withAgentParameter = (tool: ToolDefinition, agents: readonly Agent[]): ToolDefinition => {
  if (!AGENT_TOOLS.has(tool.name)) return tool;
  const first = agents.find(({ parent_id }) => parent_id === null);
  const containerAgents = agents.filter(({ parent_id }) => parent_id !== null).map(({ name }) => `"${name}"`);
  const containers = containerAgents.length === 0 ? "" : ` In containers of it are ${containerAgents.join(", ")}.`;
  const parameter = {
    type: "string",
    enum: agents.map(({ name }) => name),
    description: `Which agent of the workspace does it; "${first?.name}" when absent.${containers} Each has files and processes of its own.`,
  };
  const schema = tool.input_schema as Schema;
  return { ...tool, input_schema: { ...schema, properties: { ...schema.properties, [AGENT_PARAMETER]: parameter } } };
};

/**
 * Returns the folder of the workspace's first agent, if the permissions of the open calls depend on it: edits in the folder may need no
 * approval, and a command that only changes to it is judged like one that runs there.
 */
export const loadEditFolder = async (
  store: Store,
  { permissions, workspace_id, pending_calls }: Pick<ChatState, "permissions" | "workspace_id" | "pending_calls">,
): Promise<string | undefined> => {
  const needsFolder =
    (permissions?.default === "accept_edits" && pending_calls.some(({ tool_name }) => isEdit(tool_name))) ||
    (permissions !== null && pending_calls.some(({ args }) => namesFolder(args)));
  return needsFolder ? loadAgentFolder(store, workspace_id) : undefined;
};

/** Whether the arguments, or the command in them, name a folder or an absolute path, which may be the agent's own or below it. */
const namesFolder = (args: unknown): boolean =>
  /\bcd\s|[\s='"]\//.test(getCommand(args)) || (typeof args === "object" && args !== null && "workdir" in args);

/** Returns the folder of the named or first agent of the workspace; undefined if unknown. */
export const loadAgentFolder = async (
  store: Store,
  workspace_id: string | null,
  name?: string,
): Promise<string | undefined> => {
  const agents = await listAgents(store, workspace_id);
  return findChosenAgent(agents, name)?.expanded_directory || undefined;
};

/** Splits a call's arguments into the agent that they name and the arguments that the tool expects. */
export const splitAgentArgument = ({
  tool_name,
  args,
}: Pick<PendingCall, "tool_name" | "args">): { readonly agent: string | undefined; readonly args: unknown } => {
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
  if (!AGENT_TOOLS.has(tool_name) || !isObject || !(AGENT_PARAMETER in args)) return { agent: undefined, args };
  const { [AGENT_PARAMETER]: agent, ...rest } = args as Record<string, unknown>;
  return typeof agent === "string" ? { agent, args: rest } : { agent: undefined, args };
};

/** Returns the agent with this name, or without a name the workspace's first one; undefined if it does not exist. */
export const findChosenAgent = <A extends Agent>(agents: readonly A[], name: string | undefined): A | undefined =>
  agents.find((one) => (name === undefined ? one.parent_id === null : one.name === name));

/** Returns the error for a name that no agent has. */
export const formatUnknownAgent = (agents: readonly Agent[], name: string): string =>
  `The workspace has no agent "${name}". It has: ${agents.map((one) => one.name).join(", ")}.`;
