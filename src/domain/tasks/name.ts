// What a task is called when nobody says so: the first words of its prompt, and letters that keep it apart from others. Pure.
import { asLine } from "#schema/text.ts";

const LONGEST = 32;
const TAIL = 4;
const LONGEST_TITLE = 64;

/** A name by the rule of workspaces; `salt`: letters and digits that differ from task to task. */
export const nameFor = (prompt: string, salt: string): string => {
  const words = prompt
    .slice(0, 400)
    .normalize("NFKD")
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const tail = salt.toLowerCase().slice(0, TAIL);
  const room = LONGEST - TAIL - 1;
  let name = "";
  for (const word of words ?? []) {
    const longer = name === "" ? word.slice(0, room) : `${name}-${word}`;
    if (longer.length > room) break;
    name = longer;
  }
  return `${name || "task"}-${tail}`;
};

/** The first line of the prompt, as far as it fits. */
export const titleFor = (prompt: string): string => {
  const line = asLine(prompt.trim().split("\n", 1)[0] ?? "");
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1).trimEnd()}…`;
};
