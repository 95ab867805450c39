// The tools there are, and which of them a chat has: decided by the table of available.ts and checked again when one is called.
import type { TSchema } from "@sinclair/typebox";
import { askUserQuestion } from "./ask-user-question.ts";
import { attachFile } from "./attach-file.ts";
import { type ToolsOf, useOf } from "./available.ts";
import { computer } from "./computer.ts";
import { createWorkspace } from "./create-workspace.ts";
import { editFiles } from "./edit-files.ts";
import { execute } from "./execute.ts";
import { interruptAgent } from "./interrupt-agent.ts";
import { listAgents } from "./list-agents.ts";
import { listSubagentModels } from "./list-subagent-models.ts";
import { listTemplates } from "./list-templates.ts";
import { messageAgent } from "./message-agent.ts";
import { processList } from "./process-list.ts";
import { processOutput } from "./process-output.ts";
import { processSignal } from "./process-signal.ts";
import { proposePlan } from "./propose-plan.ts";
import { readFile } from "./read-file.ts";
import { readSkill } from "./read-skill.ts";
import { readSkillFile } from "./read-skill-file.ts";
import { readTemplate } from "./read-template.ts";
import { spawnAgent } from "./spawn-agent.ts";
import { startWorkspace } from "./start-workspace.ts";
import { stopWorkspace } from "./stop-workspace.ts";
import type { Tool } from "./tool.ts";
import { waitAgent } from "./wait-agent.ts";
import { writeFile } from "./write-file.ts";

const ALL: readonly Tool[] = [
  ...[readFile, writeFile, editFiles, execute, processOutput, processList, processSignal, attachFile, computer],
  ...[listTemplates, readTemplate, createWorkspace, startWorkspace, stopWorkspace],
  ...[spawnAgent, waitAgent, messageAgent, interruptAgent, listAgents, listSubagentModels],
  ...[proposePlan, askUserQuestion],
  ...[readSkill, readSkillFile],
];
const BY_NAME: ReadonlyMap<string, Tool> = new Map(ALL.map((one) => [one.name, one]));

export type { ToolsOf } from "./available.ts";

/** True for a tool that runs on the server's side, in whatever chat: a client's tool of that name is never asked for. */
export const isServerTool = (name: string): boolean => BY_NAME.has(name);

/** The names of all of them. */
export const serverToolNames = (): string[] => [...BY_NAME.keys()];

/** True for a tool after whose answer a person has the word. */
export const endsTurn = (name: string): boolean => BY_NAME.get(name)?.ends_turn === true;

/** True for a tool whose result is a picture. */
export const givesImage = (name: string): boolean => BY_NAME.get(name)?.gives_image === true;

/** The tools of such a chat, in a steady order. */
export const toolsFor = (of: ToolsOf): readonly Tool<TSchema>[] => ALL.filter(({ name }) => useOf(name, of) !== "no");
