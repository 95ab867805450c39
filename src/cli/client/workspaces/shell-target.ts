// Resolves the target of a shell.
import type { Workspace } from "#schema/workspaces/workspace.ts";

/** A terminal, for both kinds of shell. */
export type TerminalTarget = {
  workspace: Workspace;
  agent_id: string;
  /** ID of the terminal; the same ID attaches to the running one. */
  id: string;
  /** The command as typed; undefined for the login shell. */
  command: string | undefined;
  container: string | undefined;
  query: Readonly<Record<string, string>>;
};
