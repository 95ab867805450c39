// Finds workspaces by name, for all commands that work on one.
import { formatLabel } from "#base/links/app-label.ts";
import { canGetKey, toConsentPath } from "#base/links/external-link.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { App } from "#schema/workspaces/app.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { VerbFailure } from "../../failure.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";

/** Returns the caller's workspace for `NAME`, another user's for `OWNER/NAME`. Throws VerbFailure if it does not exist. */
export const getWorkspace = async (client: Client, name: string): Promise<Workspace> => {
  const [owner, workspaceName] = name.includes("/") ? name.split("/", 2) : ["me", name];
  const path =
    `/api/v2/users/${encodeURIComponent(owner ?? "")}/workspace/${encodeURIComponent(workspaceName ?? "")}` as const;
  return client.get(path).catch(async (error) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw await toUnknownNameError("workspace", name, () => listOwnWorkspaces(client), "slipway ls");
  });
};

/** Returns the names of the caller's own workspaces. */
export const listOwnWorkspaces = async (client: Client): Promise<string[]> => {
  const { workspaces } = await client.get("/api/v2/workspaces?q=owner%3Ame&limit=100");
  return workspaces.map(({ name }) => name);
};

/** Returns the named workspace, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectWorkspace = (
  input: VerbInput,
  words: readonly string[],
): ((client: Client) => Promise<Workspace>) => {
  const word = takeOneWord(input, words, "the workspace");
  return async (client) =>
    getWorkspace(client, await promptIfMissing(input, word, "Workspace", () => listOwnWorkspaces(client)));
};

/** Returns the agents of the newest build. */
export const listAgents = ({ latest_build }: Pick<Workspace, "latest_build">): WorkspaceAgent[] =>
  latest_build.resources.flatMap(({ agents }) => agents ?? []);

/** Splits `NAME.AGENT`; the agent is undefined for `NAME`. */
export const splitName = (name: string): [workspace: string, agent: string | undefined] => {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? [name, undefined] : [name.slice(0, dot), name.slice(dot + 1)];
};

/** Returns the named agent, or the only one. Throws VerbFailure with a list of agents. */
export const getAgent = (workspace: Workspace, name: string | undefined): WorkspaceAgent => {
  const agents = listAgents(workspace);
  const names = agents.map((one) => toPlainLine(one.name)).join(", ");
  const [first, more] = name === undefined ? agents : agents.filter((one) => one.name === name);
  if (agents.length === 0) throw new VerbFailure(`${workspace.name} has no agent; is it running?`);
  if (!first) throw new VerbFailure(`${workspace.name} has no agent ${name}; it has ${names}`);
  if (more) throw new VerbFailure(`specify the agent, as ${workspace.name}.AGENT: ${names}`);
  return first;
};

/** Where a server serves the apps of a workspace. */
export type AppServer = {
  readonly server: URL;
  /** The wildcard of the apps' host names; empty if apps have no hosts of their own. */
  readonly host: string;
};

/** Returns an app's URL: on a subdomain, below the server's address, external, or the consent page of an app that can get an API key. */
export const toAppUrl = (
  { id, owner_name, name }: Workspace,
  agent: Pick<WorkspaceAgent, "name" | "parent_id">,
  app: App,
  { server, host }: AppServer,
): string => {
  if (canGetKey(agent, app)) {
    return new URL(toConsentPath({ workspace_id: id, agent: agent.name, app: app.slug }), server).href;
  }
  if (app.external) return app.url;
  const label = formatLabel({ app: app.slug, agent: agent.name, workspace: name, user: owner_name });
  if (host !== "" && label !== "" && app.command === "") return `${server.protocol}//${host.replace("*", label)}/`;
  return new URL(`/@${owner_name}/${name}.${agent.name}/apps/${app.slug}/`, server).href;
};
