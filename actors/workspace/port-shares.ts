// Decides about shared ports of a workspace. A guard prevents a share from exceeding the template's maximum if the maximum is lowered at
// the same time. Pure; used only by the workspace actor, which reads the data.
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
  readonly shares: readonly PortShareRow[];
  /** Whether the person may share ports now. They may have lost access after the request was checked. */
  readonly is_allowed: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
};

/** `by` is null for the workspace's owner. */
export type PortSharer = { readonly by: { readonly id: string; readonly username: string } | null };

/** Shares a port, or changes its share (rules SH-8 and SH-9). Notifies the owner when someone else makes a port public. */
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

/** Returns statements that unshare these ports, because the people who shared them may no longer share ports. */
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

/** Unshares a port. Refuses with 404 if the port is not shared. */
export const unsharePort = (
  state: WorkspaceState,
  port: Pick<PortShareRow, "agent_name" | "port">,
  { shares, now }: Pick<PortContext, "shares" | "now">,
): Decision => {
  const before = shares.find(isSamePort(port));
  if (!before) return { kind: "refused", error: notFound() };
  return toInvisibleChange(state, endPortShares(state, [before], now));
};

/** Lowers port shares above the template's maximum (rule SH-12). */
export const lowerPorts = (
  state: WorkspaceState,
  { maxLevel, shares, now }: Pick<PortContext, "maxLevel" | "shares" | "now">,
): Decision => {
  const tooOpen = shares.filter(({ share_level }) => isMoreOpen(share_level, maxLevel));
  // Apps of sub-agents are limited when they are read, so only their open streams are checked again.
  if (tooOpen.length === 0) return toInvisibleChange(state, []);
  const lowered = tooOpen.map((share) => ({ ...share, share_level: maxLevel }));
  const auditEntries = lowered.map((share, index) => auditPort(state, tooOpen[index], share, now));
  return toInvisibleChange(state, [savePortShare(lowered), ...auditEntries]);
};

type Share = Pick<PortShareRow, "agent_name" | "port" | "protocol" | "share_level">;

/** Returns the audit log entry for a changed port share (rule AU-7). */
const auditPort = (
  { workspace }: WorkspaceState,
  before: Share | undefined,
  after: Share | undefined,
  now: number,
): Statement => {
  const { agent_name = "", port = 0 } = after ?? before ?? {};
  const changeAction = after === undefined ? "delete" : "write";
  return insertAudit({
    now,
    resource_type: "port_share",
    resource_id: workspace.id,
    workspace_id: workspace.id,
    organization_id: workspace.organization_id,
    target: `${workspace.name} ${agent_name}:${port}`,
    before,
    after,
    action: before === undefined ? "create" : changeAction,
  });
};

const isSamePort =
  ({ agent_name, port }: Pick<PortShareRow, "agent_name" | "port">) =>
  (other: PortShareRow): boolean =>
    other.agent_name === agent_name && other.port === port;

/** Returns a change that watchers do not see, after which open streams of shared ports are checked again. */
const toInvisibleChange = (state: WorkspaceState, writes: Statement[]): Change => ({
  kind: "change",
  state,
  writes,
  events: [{ topic: "access_changed" }],
  effects: [],
});
