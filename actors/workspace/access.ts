// Reads the rows for the workspace actor's decisions about access: the shared ports, the people who may share them, and the port shares and
// sub-agents to end when someone loses access (rule AG-28).
import { listAgentsOfBuild, listRunningAgents } from "#db/agents/agents.ts";
import { deleteSubAgent } from "#db/agents/sub-agents.ts";
import type { Store } from "#db/engine/store.ts";
import { findTemplateEvenDeleted } from "#db/templates/templates.ts";
import { findSharableBy, listAbandonedPortShares, listStoredPortShares } from "#db/workspaces/port-shares.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import type { ShareLevel } from "#schema/workspaces/port-share.ts";
import { agentStatus } from "../agent/status.ts";
import type { Change, Decision, WorkspaceState } from "./decision.ts";
import { editWorkspace, type WorkspaceEdit } from "./edits.ts";
import { withExtraWrites } from "./outcome.ts";
import { endPortShares, type PortContext, type PortSharer } from "./port-shares.ts";

export type StoredPorts = Omit<PortContext, "is_allowed">;

const toAclParams = ({ id, user_acl, group_acl }: WorkspaceRow) => ({
  workspace_id: id,
  user_acl: JSON.stringify(user_acl),
  group_acl: JSON.stringify(group_acl),
});

/** Decides an edit. Also unshares ports of people who may no longer share them. If someone has lost access, also deletes sub-agents. */
export const decideEdit = async (
  store: Store,
  state: WorkspaceState,
  edit: WorkspaceEdit,
  now: number,
): Promise<Decision> => {
  const decision = editWorkspace(state, edit, now);
  if (decision.kind !== "change") return decision;
  const { access_lost_at, user_acl, group_acl } = decision.state.workspace;
  const { workspace: before } = state;
  const hasLostAccess = access_lost_at !== before.access_lost_at;
  if (!hasLostAccess && user_acl === before.user_acl && group_acl === before.group_acl) return decision;
  const abandoned = await store.all(listAbandonedPortShares(toAclParams(decision.state.workspace)));
  const change = withExtraWrites(decision, endPortShares(state, abandoned, now));
  return hasLostAccess ? endIdleSubAgents(store, change, now) : change;
};

/**
 * Deletes sub-agents unless they and their parents are connected, because the person who lost access may have a copy of their tokens (rule
 * AG-28). Only a connected daemon can get a new token, and only its parent knows that it created it. The parent's daemon creates a deleted
 * sub-agent again.
 */
const endIdleSubAgents = async (store: Store, change: Change, now: number): Promise<Change> => {
  const agents = await store.all(listRunningAgents({ workspace_id: change.state.workspace.id }));
  const connected = new Set(agents.filter((agent) => agentStatus(agent, now) === "connected").map(({ id }) => id));
  const idle = agents.filter(
    ({ id, parent_id }) => parent_id !== null && !(connected.has(id) && connected.has(parent_id)),
  );
  const events = idle.map(({ id }) => ({ topic: "agent_gone", agent_id: id }) as const);
  return { ...withExtraWrites(change, idle.flatMap(deleteSubAgent)), events: [...change.events, ...events] };
};

/** Returns true if the person may share ports now. If they lose access later, the timer `lost_access` ends the share. */
export const maySharePort = async (
  store: Store,
  { workspace }: WorkspaceState,
  { by }: PortSharer,
): Promise<boolean> => {
  if (by === null) return true;
  const found = await store.get(findSharableBy({ ...toAclParams(workspace), user_id: by.id }));
  return found !== undefined;
};

/** Returns the template's maximum, the agents of the latest build, and the stored shares. `now` is in milliseconds since 1970. */
export const loadPortContext = async (
  store: Store,
  { workspace, build }: WorkspaceState,
  now: number,
): Promise<StoredPorts> => {
  const template = await store.get(findTemplateEvenDeleted({ id: workspace.template_id }));
  const agents = await store.all(listAgentsOfBuild({ build_id: build.id }));
  return {
    maxLevel: (template?.max_port_share_level ?? "owner") as ShareLevel,
    agents: agents.map(({ name }) => name),
    shares: await store.all(listStoredPortShares({ workspace_id: workspace.id })),
    now,
  };
};
