// Lists all tools, and decides which of them a chat has.
import type { TSchema } from "@sinclair/typebox";
import { askUserQuestion } from "./ask-user-question.ts";
import { CHAT_MODES, type ChatMode, type ChatToolContext, type ToolUse, type UseRow } from "./available.ts";
import { computer } from "./computer.ts";
import { attachFile } from "./files/attach-file.ts";
import { editFiles } from "./files/edit-files.ts";
import { readFile } from "./files/read-file.ts";
import { writeFile } from "./files/write-file.ts";
import { execute } from "./processes/execute.ts";
import { processList } from "./processes/process-list.ts";
import { processOutput } from "./processes/process-output.ts";
import { processSignal } from "./processes/process-signal.ts";
import { proposePlan } from "./propose-plan.ts";
import { readSkill } from "./skills/read-skill.ts";
import { readSkillFile } from "./skills/read-skill-file.ts";
import { interruptAgent } from "./subagents/interrupt-agent.ts";
import { listAgents } from "./subagents/list-agents.ts";
import { listSubagentModels } from "./subagents/list-subagent-models.ts";
import { messageAgent } from "./subagents/message-agent.ts";
import { spawnAgent } from "./subagents/spawn-agent.ts";
import { waitAgent } from "./subagents/wait-agent.ts";
import type { Tool } from "./tool.ts";
import { createWorkspace } from "./workspaces/create-workspace.ts";
import { listTemplates } from "./workspaces/list-templates.ts";
import { readTemplate } from "./workspaces/read-template.ts";
import { startWorkspace } from "./workspaces/start-workspace.ts";
import { stopWorkspace } from "./workspaces/stop-workspace.ts";

/**
 * Every tool, and which chats have it: enforced where tools are offered and again where one is called, so that no prompt, no old history
 * and no compaction gives more (rules SB-2, PM-2).
 */
const TOOLS: readonly (readonly [tool: Tool, ...UseRow])[] = [
  // tool, needs, root, plan, general, explore, computer_use
  [readFile, "workspace", "yes", "yes", "yes", "yes", "yes"],
  [writeFile, "workspace", "yes", "plan_file", "yes", "no", "yes"],
  [editFiles, "workspace", "yes", "plan_file", "yes", "no", "yes"],
  [execute, "workspace", "yes", "read_only", "yes", "read_only", "yes"],
  [processOutput, "workspace", "yes", "yes", "yes", "yes", "yes"],
  [processList, "workspace", "yes", "no", "yes", "no", "yes"],
  [processSignal, "workspace", "yes", "no", "yes", "no", "yes"],
  [attachFile, "workspace", "yes", "no", "yes", "no", "yes"],
  [computer, "workspace", "no", "no", "no", "no", "yes"],
  [listTemplates, "anywhere", "yes", "no", "no", "no", "no"],
  [readTemplate, "anywhere", "yes", "no", "no", "no", "no"],
  [createWorkspace, "anywhere", "yes", "no", "no", "no", "no"],
  [startWorkspace, "workspace", "yes", "no", "no", "no", "no"],
  [stopWorkspace, "workspace", "yes", "no", "no", "no", "no"],
  [proposePlan, "workspace", "no", "yes", "no", "no", "no"],
  [askUserQuestion, "anywhere", "no", "yes", "no", "no", "no"],
  [spawnAgent, "anywhere", "yes", "explore_only", "no", "no", "no"],
  [waitAgent, "anywhere", "yes", "yes", "no", "no", "no"],
  [messageAgent, "anywhere", "yes", "explore_only", "no", "no", "no"],
  [interruptAgent, "anywhere", "yes", "yes", "no", "no", "no"],
  [listAgents, "anywhere", "yes", "yes", "no", "no", "no"],
  [listSubagentModels, "anywhere", "yes", "yes", "no", "no", "no"],
  [readSkill, "anywhere", "yes", "yes", "yes", "yes", "yes"],
  [readSkillFile, "anywhere", "yes", "yes", "yes", "yes", "yes"],
];

/** The same for calls of other tools, by their kind. */
const KINDS: Readonly<Record<string, UseRow>> = {
  workspace_mcp: ["workspace", "yes", "no", "yes", "no", "yes"],
  external_mcp: ["anywhere", "yes", "approved", "yes", "yes", "yes"],
  provider: ["anywhere", "yes", "no", "yes", "no", "yes"],
  dynamic: ["anywhere", "yes", "no", "no", "no", "no"],
};

const BY_NAME: ReadonlyMap<string, Tool> = new Map(TOOLS.map(([one]) => [one.name, one]));
const ROWS_BY_NAME: ReadonlyMap<string, UseRow> = new Map<string, UseRow>([
  ...TOOLS.map(([{ name }, ...row]) => [name, row] as const),
  ...Object.entries(KINDS),
]);

/** Returns how a chat of this kind may use a tool or a kind of tools; `no` for unknown names. */
export const findToolUse = (name: string, { mode, is_planning, has_workspace }: ChatToolContext): ToolUse => {
  const row = ROWS_BY_NAME.get(name);
  if (!row || (row[0] === "workspace" && !has_workspace)) return "no";
  const use = getUse(row, mode);
  // A sub-chat in plan mode has only what a person's chat has in plan mode, too.
  return is_planning && use === "yes" ? getUse(row, "plan") : use;
};

const getUse = (row: UseRow, mode: ChatMode): ToolUse => row[1 + CHAT_MODES.indexOf(mode)] as ToolUse;

/** True for a tool of ours that works in a workspace. */
export const worksInWorkspace = (name: string): boolean =>
  BY_NAME.has(name) && ROWS_BY_NAME.get(name)?.[0] === "workspace";

/**
 * Returns why a call with these arguments may not run although the chat has the tool; undefined if it may. `args` must match the tool's
 * schema.
 */
export const explainLimit = (name: string, args: unknown, context: ChatToolContext): string | undefined => {
  const use = findToolUse(name, context);
  const { path, files = [], type } = args as { path?: string; files?: { path: string }[]; type?: string };
  if (use === "plan_file") {
    const paths = [...(path === undefined ? [] : [path]), ...files.map((file) => file.path)];
    const isPlan = paths.length > 0 && paths.every((one) => one === context.plan_path);
    return isPlan ? undefined : `While this chat plans, only its plan may be written: ${context.plan_path}`;
  }
  // The recipient of a message is checked when it is sent.
  if (use === "explore_only" && name === "spawn_agent" && type !== "explore") {
    return "While this chat plans, only agents of the type explore can be started.";
  }
  return undefined;
};

export type { ChatToolContext };

/** True for a tool that runs on the server; a client's tool of the same name is ignored. */
export const isServerTool = (name: string): boolean => BY_NAME.has(name);

/** Returns the names of all server tools. */
export const listServerToolNames = (): string[] => [...BY_NAME.keys()];

/** True for a tool that ends the turn, so that the user replies next. */
export const isTurnEnding = (name: string): boolean => BY_NAME.get(name)?.ends_turn === true;

/** True for a tool that changes no file of the workspace. */
export const isReadOnlyTool = (name: string): boolean => BY_NAME.get(name)?.only_reads === true;

/** True for a tool that runs without approval, since it changes nothing outside of the chat. */
export const isSideEffectFree = (name: string): boolean => BY_NAME.get(name)?.changes_nothing === true;

/** True for a tool whose result is a picture. */
export const returnsImage = (name: string): boolean => BY_NAME.get(name)?.gives_image === true;

/** Returns the tools of a chat, in a stable order. */
export const listTools = (context: ChatToolContext): readonly Tool<TSchema>[] =>
  TOOLS.flatMap(([one]) => (findToolUse(one.name, context) === "no" ? [] : [one]));
