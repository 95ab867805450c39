// Decides about shared ports of a workspace as pure functions. Used only by the workspace actor, which reads the data for them. A guard
// on the
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
  readonly maxLevel: ShareLevel;
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
  { maxLevel, agents, shares, is_allowed, now }: PortContext,
): Decision => {
  const toRefusal = (error: AppError): Decision => ({ kind: "refused", error });
  if (state.workspace.deleted) return toRefusal(conflict("The workspace has been deleted."));
  if (!is_allowed) return toRefusal(forbidden("You may not share ports of this workspace."));
  if (isMoreOpen(share.share_level, maxLevel)) {
    return toRefusal(invalidField("share_level", `the template allows at most ${maxLevel}`));
  }
  if (!agents.includes(share.agent_name)) {
    return toRefusal(invalidField("agent_name", "the latest build has no agent of this name"));
  }
  if (shares.length >= MAX_SHARES && !shares.some(isSamePort(share))) {
    return toRefusal(new AppError("invalid", `A workspace can share at most ${MAX_SHARES} ports.`));
  }
  const { template_id, id: workspace_id } = state.workspace;
  const guard = guardShareLevel({ id: template_id, level: maxLevel });
  const { by, agent_name, port, protocol, share_level } = share;
  const before = shares.find(isSamePort(share));
  const row = { workspace_id, agent_name, port, protocol, share_level, shared_by: by?.id ?? null };
  const makesPublic = share_level === "public" && before?.share_level !== "public";
  const notices = by !== null && makesPublic ? [buildPublicPortNotice(state, by.username, share, now)] : [];
  return toInvisibleChange(state, [guard, savePortShare(row), auditPort(state, before, share, now), ...notices]);
};

/** Returns statements that unshare these ports, because the people who shared them may not share ports any longer. */
export const endPortShares = (state: WorkspaceState, shares: readonly PortShareRow[], now: number): Statement[] =>
  shares.flatMap((share) => [
    deletePortShare({ workspace_id: share.workspace_id, agent_name: share.agent_name, port: share.port }),
    auditPort(state, share, undefined, now),
  ]);

const buildPublicPortNotice = (
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
  return toInvisibleChange(state, [
    deletePortShare({ workspace_id: state.workspace.id, agent_name, port: number }),
    entry,
  ]);
};

/** Lowers port shares above the template's maximum (rule SH-12). */
export const lowerPorts = (
  state: WorkspaceState,
  { maxLevel, shares, now }: Pick<PortContext, "maxLevel" | "shares" | "now">,
): Decision => {
  const above = shares.filter(({ share_level }) => isMoreOpen(share_level, maxLevel));
  // Apps of nested agents are limited when they are read, so only their open streams are checked again.
  if (above.length === 0) return toInvisibleChange(state, []);
  const lowered = above.map((share) => ({ ...share, share_level: maxLevel }));
  const entry = lowered.map((share, i) => auditPort(state, above[i], share, now));
  return toInvisibleChange(state, [savePortShare(lowered), ...entry]);
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
const toInvisibleChange = (state: WorkspaceState, writes: Statement[]): Change => ({
  kind: "change",
  state,
  writes,
  events: [{ topic: "access_changed" }],
  effects: [],
});
