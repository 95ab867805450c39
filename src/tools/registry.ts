// The registry of tools. Which of them a chat has is decided by the table in available.ts and checked again at each call.
import type { TSchema } from "@sinclair/typebox";
import { askUserQuestion } from "./ask-user-question.ts";
import { lookUpUse, type ToolsOf } from "./available.ts";
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

const ALL: readonly Tool[] = [
  ...[readFile, writeFile, editFiles, execute, processOutput, processList, processSignal, attachFile, computer],
  ...[listTemplates, readTemplate, createWorkspace, startWorkspace, stopWorkspace],
  ...[spawnAgent, waitAgent, messageAgent, interruptAgent, listAgents, listSubagentModels],
  ...[proposePlan, askUserQuestion],
  ...[readSkill, readSkillFile],
];
const BY_NAME: ReadonlyMap<string, Tool> = new Map(ALL.map((one) => [one.name, one]));

export type { ToolsOf } from "./available.ts";

/** True for a tool that runs on the server; a client's tool of the same name is ignored. */
export const isServerTool = (name: string): boolean => BY_NAME.has(name);

/** Returns the names of all server tools. */
export const serverToolNames = (): string[] => [...BY_NAME.keys()];

/** True for a tool that ends the turn, so that the user replies next. */
export const endsTurn = (name: string): boolean => BY_NAME.get(name)?.ends_turn === true;

/** True for a tool that changes no file of the workspace. */
export const onlyReads = (name: string): boolean => BY_NAME.get(name)?.only_reads === true;

/** True for a tool whose result is an image. */
export const givesImage = (name: string): boolean => BY_NAME.get(name)?.gives_image === true;

/** Returns the tools of such a chat, in a stable order. */
export const toolsFor = (of: ToolsOf): readonly Tool<TSchema>[] =>
  ALL.filter(({ name }) => lookUpUse(name, of) !== "no");
