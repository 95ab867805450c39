// Finds the agent in a path and checks the caller's access to its workspace (facts/platform 3.7). An invisible agent is a 404.
import { isDormant } from "#actors/workspace/dormancy.ts";
import { conflict, notFound } from "#base/errors.ts";
import { findAgentPlace } from "#db/agents/agents.ts";
import type { Store } from "#db/engine/store.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canSeeWorkspace, canUseWorkspace } from "../access.ts";

export type AgentPlace = NonNullable<Awaited<ReturnType<typeof findAgentById>>>;

/** Returns an agent with its workspace; undefined if it does not exist. */
export const findAgentById = (store: Store, id: string) => store.get(findAgentPlace({ id: id.toLowerCase() }));

/** Returns an agent's workspace in the form of the access rules. */
export const toWorkspace = ({ workspace_id, owner_id, organization_id, user_acl, group_acl }: AgentPlace) => ({
  id: workspace_id,
  owner_id,
  organization_id,
  user_acl,
  group_acl,
});

/**
 * Returns the agent with this ID in a workspace the caller can see. Rejects with 404 otherwise, including when the workspace is deleted.
 */
export const loadAgent = async (store: Store, id: string, caller: UserCaller): Promise<AgentPlace> => {
  const place = await findAgentById(store, id);
  if (!place || place.deleted || !canSeeWorkspace(caller, toWorkspace(place))) throw notFound();
  return place;
};

/**
 * Like `loadAgent`, for operations that require access to the workspace: terminal, ports, containers. Rejects with 409 while it is dormant,
 * because it cannot be used then (facts/platform 2.6).
 */
export const loadUsableAgent = async (store: Store, id: string, caller: UserCaller): Promise<AgentPlace> => {
  const place = await findAgentById(store, id);
  if (!place || place.deleted || !canUseWorkspace(caller, toWorkspace(place))) throw notFound();
  if (isDormant(place)) throw conflict("The workspace is dormant. Wake it up first.");
  return place;
};

/** Returns whether the agent's token is valid, which includes the time while a stop or delete build ends it. */
export const isSignedIn = (place: AgentPlace): boolean => place.signed_in !== 0;

/** Returns whether the agent's build is the latest of a workspace that is not deleted. */
export const isLatest = (place: AgentPlace): boolean => !place.deleted && place.build_id === place.latest_build_id;
