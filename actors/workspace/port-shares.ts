// Decides about shared ports of a workspace as pure functions. Used only by the workspace actor, which reads what they need. A guard on the
// template's maximum prevents a share from exceeding a maximum that is lowered at the same time.
import { AppError, conflict, forbidden, invalidField, notFound } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { deletePortShare, guardShareLevel, type PortShareRow, savePortShare } from "#db/workspaces/port-shares.ts";
import { isMoreOpen, type ShareLevel, type UpsertPortShare } from "#schema/workspaces/port-share.ts";
import type { Change, Decision, WorkspaceState } from "./decision.ts";

/** Maximum port shares of a workspace. */
const MAX_SHARES = 1_000;

export type PortContext = {
  /** The template's maximum. */
  readonly most: ShareLevel;
  /** Names of the latest build's agents. */
  readonly agents: readonly string[];
  /** The stored shares. */
  readonly shares: readonly PortShareRow[];
  /** Whether the sharer may share ports now: they may have lost access since the request was checked. */
  readonly is_allowed: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
};

/** `by` is null for the workspace's owner. */
export type PortSharer = { readonly by: { readonly id: string; readonly username: string } | null };

/** Shares a port, or changes its share (rules SH-8 and SH-9). The owner is notified when someone else makes it public. */
export const sharePort = (
  state: WorkspaceState,
  share: UpsertPortShare & PortSharer,
  { most, agents, shares, is_allowed, now }: PortContext,
): Decision => {
  const refuse = (error: AppError): Decision => ({ kind: "refused", error });
  if (state.workspace.deleted) return refuse(conflict("The workspace has been deleted."));
  if (!is_allowed) return refuse(forbidden("You may not share ports of this workspace."));
  if (isMoreOpen(share.share_level, most)) {
    return refuse(invalidField("share_level", `the template allows at most ${most}`));
  }
  if (!agents.includes(share.agent_name)) {
    return refuse(invalidField("agent_name", "the latest build has no agent of this name"));
  }
  if (shares.length >= MAX_SHARES && !shares.some(isSamePort(share))) {
    return refuse(new AppError("invalid", `A workspace can share at most ${MAX_SHARES} ports.`));
  }
  const { template_id, id: workspace_id } = state.workspace;
  const guard = guardShareLevel({ id: template_id, level: most });
  const { by, agent_name, port, protocol, share_level } = share;
  const before = shares.find(isSamePort(share));
  const row = { workspace_id, agent_name, port, protocol, share_level, shared_by: by?.id ?? null };
  const opens = share_level === "public" && before?.share_level !== "public";
  const notices = by !== null && opens ? [noticePublicPort(state, by.username, share, now)] : [];
  return unseen(state, [guard, savePortShare(row), auditPort(state, before, share, now), ...notices]);
};

/** Returns statements that unshare these ports, because the people who shared them may not share ports any longer. */
export const endPortShares = (state: WorkspaceState, shares: readonly PortShareRow[], now: number): Statement[] =>
  shares.flatMap((share) => [
    deletePortShare({ workspace_id: share.workspace_id, agent_name: share.agent_name, port: share.port }),
    auditPort(state, share, undefined, now),
  ]);

const noticePublicPort = (
  { workspace: { id, name, owner_id } }: WorkspaceState,
  person: string,
  { agent_name, port }: Pick<UpsertPortShare, "agent_name" | "port">,
  now: number,
): Statement =>
  insertNotification({
    now,
    user_id: owner_id,
    kind: "workspace_port_public",
    values: { person, port: String(port), workspace: name },
    targets: [id],
    path: `/workspaces/${id}`,
    dedupe: `workspace_port_public:${id}:${agent_name}:${port}:${now}`,
  });

/** Rejects with 404 when the port is not shared. */
export const unsharePort = (
  state: WorkspaceState,
  port: Pick<PortShareRow, "agent_name" | "port">,
  { shares, now }: Pick<PortContext, "shares" | "now">,
): Decision => {
  const before = shares.find(isSamePort(port));
  if (!before) return { kind: "refused", error: notFound() };
  const { agent_name, port: number } = port;
  const entry = auditPort(state, before, undefined, now);
  return unseen(state, [deletePortShare({ workspace_id: state.workspace.id, agent_name, port: number }), entry]);
};

/** Lowers port shares above the template's maximum (rule SH-12). */
export const lowerPorts = (
  state: WorkspaceState,
  { most, shares, now }: Pick<PortContext, "most" | "shares" | "now">,
): Decision => {
  const above = shares.filter(({ share_level }) => isMoreOpen(share_level, most));
  // Apps of nested agents are capped when they are read. Their open streams are checked again.
  if (above.length === 0) return unseen(state, []);
  const lowered = above.map((share) => ({ ...share, share_level: most }));
  const entry = lowered.map((share, i) => auditPort(state, above[i], share, now));
  return unseen(state, [savePortShare(lowered), ...entry]);
};

type Share = Pick<PortShareRow, "agent_name" | "port" | "protocol" | "share_level">;

/** Returns the audit log entry for a port (rule AU-7). */
const auditPort = (
  { workspace }: WorkspaceState,
  before: Share | undefined,
  after: Share | undefined,
  now: number,
): Statement => {
  const { agent_name = "", port = 0 } = after ?? before ?? {};
  return insertAudit({
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

/** Changes nothing that watchers see, but checks open streams of shared ports again. */
const unseen = (state: WorkspaceState, writes: Statement[]): Change => ({
  kind: "change",
  state,
  writes,
  events: [{ topic: "access_changed" }],
  effects: [],
});
