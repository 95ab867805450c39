// Sharing ports of a workspace, decided as pure functions: used by the workspace actor alone, which reads in its turn what they need
// to know. The guard on the template's level makes sure that no share slips past a maximum that is lowered in the meantime.
import { AppError, conflict, invalidField, notFound } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { audited } from "#db/reports/audit/audit.ts";
import { deletePortShare, guardShareLevel, type PortShareRow, savePortShare } from "#db/workspaces/port-shares.ts";
import { isMoreOpen, type ShareLevel, type UpsertPortShare } from "#schema/workspaces/port-share.ts";
import type { Change, Decision, WorkspaceState } from "./decision.ts";

/** Shares a workspace can have. */
const SHARES_LIMIT = 1_000;

export type KnownPorts = {
  /** What the template allows at most. */
  readonly most: ShareLevel;
  /** Names of the latest build's agents. */
  readonly agents: readonly string[];
  /** As they are stored. */
  readonly shares: readonly PortShareRow[];
  /** Milliseconds since 1970. */
  readonly now: number;
};

/** Shares a port, or changes how it is shared (rules SH-8 and SH-9). */
export const sharePort = (
  state: WorkspaceState,
  share: UpsertPortShare,
  { most, agents, shares, now }: KnownPorts,
): Decision => {
  const refuse = (error: AppError): Decision => ({ kind: "refused", error });
  if (state.workspace.deleted) return refuse(conflict("The workspace has been deleted."));
  if (isMoreOpen(share.share_level, most)) {
    return refuse(invalidField("share_level", `the template allows at most ${most}`));
  }
  if (!agents.includes(share.agent_name)) {
    return refuse(invalidField("agent_name", "the latest build has no agent of this name"));
  }
  if (shares.length >= SHARES_LIMIT && !shares.some(isSamePort(share))) {
    return refuse(new AppError("invalid", `A workspace can share at most ${SHARES_LIMIT} ports.`));
  }
  const { template_id, id } = state.workspace;
  const guard = guardShareLevel({ id: template_id, level: most });
  const entry = auditPort(state, shares.find(isSamePort(share)), share, now);
  return unseen(state, [guard, savePortShare({ ...share, workspace_id: id }), entry]);
};

/** 404 when it is not shared. */
export const unsharePort = (
  state: WorkspaceState,
  port: Pick<PortShareRow, "agent_name" | "port">,
  { shares, now }: Pick<KnownPorts, "shares" | "now">,
): Decision => {
  const before = shares.find(isSamePort(port));
  if (!before) return { kind: "refused", error: notFound() };
  const { agent_name, port: number } = port;
  const entry = auditPort(state, before, undefined, now);
  return unseen(state, [deletePortShare({ workspace_id: state.workspace.id, agent_name, port: number }), entry]);
};

/** Lowers the ports that are shared more openly than the template now allows (rule SH-12). */
export const lowerPorts = (
  state: WorkspaceState,
  { most, shares, now }: Pick<KnownPorts, "most" | "shares" | "now">,
): Decision => {
  const above = shares.filter(({ share_level }) => isMoreOpen(share_level, most));
  // An app of an agent inside another is capped where it is read; who has it open is looked at again.
  if (above.length === 0) return unseen(state, []);
  const lowered = above.map((share) => ({ ...share, share_level: most }));
  const entry = lowered.map((share, i) => auditPort(state, above[i], share, now));
  return unseen(state, [savePortShare(lowered), ...entry]);
};

type Share = Pick<PortShareRow, "agent_name" | "port" | "protocol" | "share_level">;

/** The entry of the audit log for one port (rule AU-7). */
const auditPort = (
  { workspace }: WorkspaceState,
  before: Share | undefined,
  after: Share | undefined,
  now: number,
): Statement => {
  const { agent_name = "", port = 0 } = after ?? before ?? {};
  return audited({
    now,
    resource_type: "port_share",
    resource_id: workspace.id,
    workspace_id: workspace.id,
    organization_id: workspace.organization_id,
    target: `${workspace.name} ${agent_name}:${port}`,
    before,
    after,
    action: before === undefined ? "create" : after === undefined ? "delete" : "write",
  });
};

const isSamePort =
  ({ agent_name, port }: Pick<PortShareRow, "agent_name" | "port">) =>
  (other: PortShareRow): boolean =>
    other.agent_name === agent_name && other.port === port;

/** Nothing that a watcher sees; anyone who has a shared port open is looked at again. */
const unseen = (state: WorkspaceState, writes: Statement[]): Change => ({
  kind: "change",
  state,
  writes,
  events: [{ topic: "access_changed" }],
  effects: [],
});
