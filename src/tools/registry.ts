// Which tools a chat has: decided here and checked again when one is called, so that no prompt and no old history gives more
// (facts/chats 5.2).
import type { TSchema } from "@sinclair/typebox";
import { createWorkspace } from "./create-workspace.ts";
import { editFiles } from "./edit-files.ts";
import { execute } from "./execute.ts";
import { listTemplates } from "./list-templates.ts";
import { processList } from "./process-list.ts";
import { processOutput } from "./process-output.ts";
import { processSignal } from "./process-signal.ts";
import { readFile } from "./read-file.ts";
import { readTemplate } from "./read-template.ts";
import { startWorkspace } from "./start-workspace.ts";
import { stopWorkspace } from "./stop-workspace.ts";
import type { Tool } from "./tool.ts";
import { writeFile } from "./write-file.ts";

/** What decides about a chat's tools. */
export type ToolsOf = {
  readonly is_root: boolean;
  readonly is_planning: boolean;
  readonly has_workspace: boolean;
};

const WORKSPACE: readonly Tool[] = [readFile, writeFile, editFiles, execute, processOutput, processList, processSignal];
/** Of those, what changes no file by itself. */
const PLANNING: ReadonlySet<Tool> = new Set([readFile, execute, processOutput]);
/** Only in chats that are no other chat's, and not while they plan. */
const ROOT: readonly Tool[] = [listTemplates, readTemplate, createWorkspace];
const BOUND_ROOT: readonly Tool[] = [startWorkspace, stopWorkspace];

const ALL = new Map([...WORKSPACE, ...ROOT, ...BOUND_ROOT].map((one) => [one.name, one]));

/** True for a tool that runs on the server's side, in whatever chat: a client's tool of that name is never asked for. */
export const isServerTool = (name: string): boolean => ALL.has(name);

/** The tools of such a chat, in a steady order. */
export const toolsFor = ({ is_root, is_planning, has_workspace }: ToolsOf): readonly Tool<TSchema>[] => [
  ...(has_workspace ? WORKSPACE.filter((one) => !is_planning || PLANNING.has(one)) : []),
  ...(is_root && !is_planning ? ROOT : []),
  ...(is_root && !is_planning && has_workspace ? BOUND_ROOT : []),
];
