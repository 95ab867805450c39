// What a task is called when nobody says so. Its name stands in the audit log, in addresses and in the name of its workspace, where others see
// it, so nothing of the prompt is in it; the title, which only those see who see the task, is its first line. Pure.
import { asLine } from "#schema/text.ts";

const TAIL = 8;
const MAX_TITLE_LENGTH = 64;

/** A name by the rule of workspaces; `salt`: letters and digits that differ from task to task. */
export const nameFor = (salt: string): string => `task-${salt.toLowerCase().slice(0, TAIL)}`;

/** The first line of the prompt, as far as it fits. */
export const titleFor = (prompt: string): string => {
  const line = asLine(prompt.trim().split("\n", 1)[0] ?? "");
  return line.length <= MAX_TITLE_LENGTH ? line : `${line.slice(0, MAX_TITLE_LENGTH - 1).trimEnd()}…`;
};
