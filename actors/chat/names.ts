// Names of a chat's states: status, archived and queued messages as one word (facts/chats 1.2).
import type { Execution } from "./machine/decision.ts";

export const STATE_NAMES = [
  "W",
  "E0",
  "E1",
  "R0",
  "R1",
  "I0",
  "I1",
  "A0",
  "A1",
  "XW",
  "XE0",
  "XE1",
  "invalid",
] as const;
export type StateName = (typeof STATE_NAMES)[number];

const LETTERS: Readonly<Record<string, string>> = { error: "E", running: "R", interrupting: "I", requires_action: "A" };

/** Combinations that are not in the table are `invalid`. */
export const toStateName = ({
  status,
  archived,
  queue,
}: Pick<Execution, "status" | "archived" | "queue">): StateName => {
  const hasQueue = queue.length > 0;
  if (status === "waiting") return hasQueue ? "invalid" : archived ? "XW" : "W";
  const letter = LETTERS[status];
  if (letter === undefined || (archived && letter !== "E")) return "invalid";
  return `${archived ? "X" : ""}${letter}${hasQueue ? 1 : 0}` as StateName;
};
