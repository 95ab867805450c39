// Short names for a chat's states, such as `R1`: the status, whether it is archived, and whether messages are queued (facts/chats 1.2).
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

/** Returns `invalid` for a combination that the state machine does not have. */
export const toStateName = ({
  status,
  archived,
  queue,
}: Pick<Execution, "status" | "archived" | "queue">): StateName => {
  const hasQueue = queue.length > 0;
  if (status === "waiting" && hasQueue) return "invalid";
  if (status === "waiting") return archived ? "XW" : "W";
  const letter = LETTERS[status];
  if (letter === undefined || (archived && letter !== "E")) return "invalid";
  return `${archived ? "X" : ""}${letter}${hasQueue ? 1 : 0}` as StateName;
};

/** Returns whether a turn runs or is being stopped. */
export const isActive = ({ status }: Pick<Execution, "status">): boolean =>
  status === "running" || status === "interrupting";
