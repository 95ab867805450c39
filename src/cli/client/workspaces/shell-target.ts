// Where a shell is opened.
import type { Workspace } from "#schema/workspaces/workspace.ts";

/** Which terminal, for both ways to use it. */
export type Place = {
  workspace: Workspace;
  agent_id: string;
  /** The terminal's id: the same one joins what runs. */
  id: string;
  /** As the person wrote it; undefined for the login shell. */
  command: string | undefined;
  container: string | undefined;
  query: Readonly<Record<string, string>>;
};
