// The WebSocket of a terminal, used by both kinds of shell.
import { plain } from "../../text.ts";
import type { Place } from "./shell-target.ts";

export const terminalPath = ({ agent_id }: Place, query: Readonly<Record<string, string>>): string =>
  `/api/v2/workspaceagents/${agent_id}/pty?${new URLSearchParams(query)}`;

/** Explains why a terminal closed before it ended. */
export const describeClose = ({ code, reason }: { code: number; reason: string }, { workspace }: Place): string => {
  const why = reason ? plain(reason) : `the connection was lost (${code})`;
  return `the terminal in ${workspace.name} has closed: ${why}`;
};
