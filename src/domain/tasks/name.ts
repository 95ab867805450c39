// Default names of tasks. The name appears in the audit log, in URLs and in the workspace's name, where others see it, so it contains
// nothing of the prompt. The title, visible only to users who can see the task, is the prompt's first line. Pure.
import { asLine } from "#schema/text.ts";

const TAIL = 8;
const MAX_TITLE_LENGTH = 64;

/** Returns a name that is valid for workspaces; `salt` is letters and digits that differ between tasks. */
export const nameFor = (salt: string): string => `task-${salt.toLowerCase().slice(0, TAIL)}`;

/** Returns the first line of the prompt, truncated. */
export const titleFor = (prompt: string): string => {
  const line = asLine(prompt.trim().split("\n", 1)[0] ?? "");
  return line.length <= MAX_TITLE_LENGTH ? line : `${line.slice(0, MAX_TITLE_LENGTH - 1).trimEnd()}…`;
};
