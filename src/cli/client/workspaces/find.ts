// Workspaces by the names that people give them, for every verb that works on one.
import type { WorkspaceAgent } from "#schema/agent.ts";
import type { Workspace } from "#schema/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";

/** `NAME` is the caller's own, `OWNER/NAME` somebody else's. Throws VerbFailure when there is none. */
export const workspaceNamed = async (client: Client, name: string): Promise<Workspace> => {
  const [owner, own] = name.includes("/") ? name.split("/", 2) : ["me", name];
  const path = `/api/v2/users/${encodeURIComponent(owner ?? "")}/workspace/${encodeURIComponent(own ?? "")}`;
  return client.get<Workspace>(path).catch((error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw new VerbFailure(`there is no workspace ${name}; \`slipway workspaces list\` shows yours`);
  });
};

/** Those of the newest build. */
export const agentsOf = ({ latest_build }: Pick<Workspace, "latest_build">): WorkspaceAgent[] =>
  latest_build.resources.flatMap(({ agents }) => agents ?? []);
