// Finds the agent in a path and checks the caller's access to its workspace (facts/platform 3.7). An invisible agent is a 404.
import { isDormant } from "#actors/workspace/dormancy.ts";
import { conflict, notFound } from "#base/errors.ts";
import { findAgentAccessRow } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canSeeWorkspace, canUseWorkspace } from "../access.ts";

export type AgentAccessRow = NonNullable<Awaited<ReturnType<typeof findAgentById>>>;

/** Returns an agent with its workspace; undefined if it does not exist. */
export const findAgentById = (store: Store, id: string) => store.get(findAgentAccessRow({ id: id.toLowerCase() }));

/** Returns an agent's workspace in the form that access checks take. */
export const toWorkspace = ({ workspace_id, owner_id, organization_id, user_acl, group_acl }: AgentAccessRow) => ({
  id: workspace_id,
  owner_id,
  organization_id,
  user_acl,
  group_acl,
});

/** Returns the agent with this ID in a workspace the caller can see. Rejects with 404 otherwise, including when the workspace is deleted. */
export const loadAgent = async (store: Store, id: string, caller: UserCaller): Promise<AgentAccessRow> => {
  const agent = await findAgentById(store, id);
  if (!agent || agent.deleted || !canSeeWorkspace(caller, toWorkspace(agent))) throw notFound();
  return agent;
};

/**
 * Like `loadAgent`, for operations that require access to the workspace: terminal, ports, containers. Rejects with 409 while it is dormant,
 * because it cannot be used then (facts/platform 2.6).
 */
export const loadUsableAgent = async (store: Store, id: string, caller: UserCaller): Promise<AgentAccessRow> => {
  const agent = await findAgentById(store, id);
  if (!agent || agent.deleted || !canUseWorkspace(caller, toWorkspace(agent))) throw notFound();
  if (isDormant(agent)) throw conflict("The workspace is dormant. Wake it up first.");
  return agent;
};

/** Returns whether the agent's token is valid, which includes the time while a stop or delete build ends it. */
export const isSignedIn = (agent: AgentAccessRow): boolean => agent.signed_in !== 0;

/** Returns whether the agent's build is the latest of a workspace that is not deleted. */
export const isLatest = (agent: AgentAccessRow): boolean => !agent.deleted && agent.build_id === agent.latest_build_id;
