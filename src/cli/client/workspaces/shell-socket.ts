// The WebSocket of a terminal, used by both kinds of shell.
import { toPlainLine } from "../../text.ts";
import type { TerminalTarget } from "./shell-target.ts";

export const toTerminalPath = ({ agent_id }: TerminalTarget, query: Readonly<Record<string, string>>): string =>
  `/api/v2/workspaceagents/${agent_id}/pty?${new URLSearchParams(query)}`;

/** Explains why a terminal closed before it ended. */
export const describeClose = (
  { code, reason }: { code: number; reason: string },
  { workspace }: TerminalTarget,
): string => {
  const cause = reason ? toPlainLine(reason) : `the connection was lost (${code})`;
  return `the terminal in ${workspace.name} has closed: ${cause}`;
};
