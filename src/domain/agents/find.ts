// Finding the agent a path names, and whether the caller may see or use its workspace (facts/platform 3.7). Not visible is 404.
import { isDormant } from "#actors/workspace/dormancy.ts";
import { conflict, notFound } from "#base/errors.ts";
import { findAgentPlace } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { maySeeWorkspace, mayUseWorkspace } from "../access.ts";

export type AgentPlace = NonNullable<Awaited<ReturnType<typeof findAgentById>>>;

/** Where an agent belongs; undefined when there is no such agent. */
export const findAgentById = (store: Store, id: string) => store.get(findAgentPlace({ id: id.toLowerCase() }));

/** The workspace of an agent, as access rules ask about it. */
export const toWorkspace = ({ workspace_id, owner_id, organization_id, user_acl, group_acl }: AgentPlace) => ({
  id: workspace_id,
  owner_id,
  organization_id,
  user_acl,
  group_acl,
});

/** The agent with this id in a workspace the caller may see. 404 otherwise, also when the workspace is deleted. */
export const agentAt = async (store: Store, id: string, caller: UserCaller): Promise<AgentPlace> => {
  const place = await findAgentById(store, id);
  if (!place || place.deleted || !maySeeWorkspace(caller, toWorkspace(place))) throw notFound();
  return place;
};

/**
 * The same for what only those may do who can sign in to the workspace: terminal, ports, containers. 409 while it is dormant: nothing
 * of it is used then (facts/platform 2.6).
 */
export const usableAgentAt = async (store: Store, id: string, caller: UserCaller): Promise<AgentPlace> => {
  const place = await findAgentById(store, id);
  if (!place || place.deleted || !mayUseWorkspace(caller, toWorkspace(place))) throw notFound();
  if (isDormant(place)) throw conflict("The workspace is dormant. Wake it up first.");
  return place;
};

/** True while the agent's token counts: also while a stop or delete build ends it. */
export const isSignedIn = (place: AgentPlace): boolean => place.signed_in !== 0;

/** True while the agent's build is the latest of a workspace that is not deleted. */
export const isLatest = (place: AgentPlace): boolean => !place.deleted && place.build_id === place.latest_build_id;
