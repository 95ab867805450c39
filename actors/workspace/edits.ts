// Changes a workspace without a build: its name, automatic updates and shares. An unchanged value is `stale`. A deleted workspace rejects
// changes. Pure; used only by the workspace actor.
import { AppError, conflict } from "#base/errors.ts";
import type { Statement } from "#db/engine/sql.ts";
import { guardSharing } from "#db/workspaces/sharing.ts";
import type { Acl, WorkspaceRole } from "#schema/workspaces/acl.ts";
import type { Decision, WorkspaceState } from "./decision.ts";
import { buildShareNotices, retractShareNotices } from "./notices.ts";
import { isUnclaimed } from "./schedule-rules.ts";
import { toVisibleChange } from "./state.ts";

/** Maximum users and groups that a workspace is shared with. */
const MAX_SHARES = 500;

/** New roles by ID of the user or group. An empty role removes the share. */
export type RoleChanges = Readonly<Record<string, WorkspaceRole | "">>;

export type WorkspaceEdit =
  | { readonly type: "rename"; readonly name: string }
  | { readonly type: "follow"; readonly automatic_updates: "always" | "never" }
  | {
      readonly type: "share";
      readonly user_roles: RoleChanges;
      readonly group_roles: RoleChanges;
      /** The username of the person who shares the workspace. */
      readonly by: string;
    }
  | { readonly type: "leave"; readonly user_id: string }
  | { readonly type: "unshare" }
  /** Someone has lost access without a change of the shares, because their account, membership or group ended. */
  | { readonly type: "lose_access" };

const STALE: Decision = { kind: "stale" };

/** Decides an edit. `now`: milliseconds since 1970. */
export const editWorkspace = (state: WorkspaceState, edit: WorkspaceEdit, now: number): Decision => {
  const { workspace } = state;
  if (workspace.deleted) return { kind: "refused", error: new AppError("gone", "The workspace has been deleted.") };
  switch (edit.type) {
    case "rename":
      return edit.name === workspace.name
        ? STALE
        : toVisibleChange(state, { workspace: { name: edit.name, updated_at: now } }, []);
    case "follow":
      return edit.automatic_updates === workspace.automatic_updates
        ? STALE
        : toVisibleChange(state, { workspace: { automatic_updates: edit.automatic_updates, updated_at: now } }, []);
    case "share": {
      // A person with access could copy the agent's token and still use it after someone else has claimed the prebuild.
      if (isUnclaimed(workspace) && isAdding(edit)) {
        return { kind: "refused", error: conflict("A prebuilt workspace can be shared only after it is claimed.") };
      }
      const user_acl = mergeRoles(workspace.user_acl, edit.user_roles);
      return withAcl(state, user_acl, mergeRoles(workspace.group_acl, edit.group_roles), now, [
        // Rejects the change if the organization disables sharing at the same time.
        guardSharing({ organization_id: workspace.organization_id }),
        ...buildShareNotices(workspace, user_acl, edit.by, now),
      ]);
    }
    case "leave": {
      const { [edit.user_id]: _, ...user_acl } = workspace.user_acl;
      return withAcl(state, user_acl, workspace.group_acl, now, []);
    }
    case "unshare":
      return withAcl(state, {}, {}, now, []);
    case "lose_access": {
      const change = toVisibleChange(state, { workspace: { access_lost_at: toLossTime(state, now) } }, []);
      return { ...change, events: [...change.events, { topic: "access_changed" }] };
    }
  }
};

const isAdding = ({ user_roles, group_roles }: Extract<WorkspaceEdit, { type: "share" }>): boolean =>
  [user_roles, group_roles].some((roles) => Object.values(roles).some((role) => role !== ""));

const mergeRoles = (acl: Acl, changes: RoleChanges): Acl => {
  const next: Record<string, WorkspaceRole> = { ...acl };
  for (const [id, role] of Object.entries(changes)) {
    if (role === "") delete next[id];
    else next[id] = role;
  }
  return next;
};

/**
 * Changes the shares. Ends the streams of people who have lost access (rule SH-6), removes their notifications about the share, and
 * invalidates the agents' tokens that they may have copied (rule AG-28).
 */
const withAcl = (
  state: WorkspaceState,
  user_acl: Acl,
  group_acl: Acl,
  now: number,
  writes: readonly Statement[],
): Decision => {
  const { workspace } = state;
  if (isSame(user_acl, workspace.user_acl) && isSame(group_acl, workspace.group_acl)) return STALE;
  if (Object.keys(user_acl).length + Object.keys(group_acl).length > MAX_SHARES) {
    const message = `A workspace can be shared with at most ${MAX_SHARES} users and groups.`;
    return { kind: "refused", error: new AppError("invalid", message) };
  }
  const isLoss = hasRemoved(workspace.user_acl, user_acl) || hasRemoved(workspace.group_acl, group_acl);
  const access_lost_at = isLoss ? toLossTime(state, now) : workspace.access_lost_at;
  const change = toVisibleChange(state, { workspace: { user_acl, group_acl, access_lost_at, updated_at: now } }, [
    ...writes,
    ...retractShareNotices(workspace, user_acl),
  ]);
  return { ...change, events: [...change.events, { topic: "access_changed" }] };
};

const isSame = (a: Acl, b: Acl): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([id, role]) => b[id] === role);

/** Returns true if someone was removed. Someone with a lower role still has access to the workspace. */
const hasRemoved = (before: Acl, after: Acl): boolean => Object.keys(before).some((id) => !(id in after));

/** Returns the time of a loss of access, which is later than every earlier loss even if the clock was set back. */
export const toLossTime = ({ workspace }: WorkspaceState, now: number): number =>
  Math.max(now, (workspace.access_lost_at ?? 0) + 1);
