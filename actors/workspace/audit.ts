// Builds audit log entries for a workspace and its builds. They are derived from the states before and after a message, so that no message
// can omit one (rules AU-1, AU-7). Pure; used only by the workspace actor.

import { getCurrentOrigin } from "#base/origin.ts";
import type { Statement } from "#db/engine/sql.ts";
import { type AuditEntry, insertAudit, isAudited } from "#db/reports/audit/audit.ts";
import type { Decision, WorkspaceState } from "./decision.ts";

/** Reasons of builds that the server starts automatically. */
const AUTOMATIC = new Set(["autostart", "autostop", "task_auto_pause", "dormancy", "autodelete"]);

/** `before`: undefined for a new workspace. `now`: milliseconds since 1970. */
export const buildWorkspaceEntries = (
  before: WorkspaceState | undefined,
  after: WorkspaceState,
  now: number,
): readonly AuditEntry[] => {
  const { workspace, build, job } = after;
  const previous = before?.workspace;
  const isNewBuild = before?.build.id !== build.id;
  const isNewlyCanceled = !isNewBuild && before?.job.canceled_at === null && job.canceled_at !== null;
  const isDeletion = previous?.deleted === false && workspace.deleted;
  // Changes of derived columns are not logged, because the changes that cause them are.
  const derived = { next_start_at: workspace.next_start_at, deleting_at: workspace.deleting_at };
  const isChanged =
    previous !== undefined &&
    !isDeletion &&
    previous !== workspace &&
    isAudited("workspace", { ...previous, ...derived }, workspace);
  if (previous && !isNewBuild && !isNewlyCanceled && !isDeletion && !isChanged) return [];
  const actor = getCurrentOrigin() === undefined && !AUTOMATIC.has(build.reason) ? { user_id: build.initiator_id } : {};
  const common = { now, organization_id: workspace.organization_id, workspace_id: workspace.id };
  const base = { ...common, resource_type: "workspace", resource_id: workspace.id, target: workspace.name } as const;
  const buildBase = {
    ...common,
    resource_type: "workspace_build" as const,
    resource_id: build.id,
    target: workspace.name,
    build_reason: build.reason,
    additional: {
      workspace_name: workspace.name,
      workspace_id: workspace.id,
      build_number: String(build.build_number),
      build_reason: build.reason,
    },
  };
  return [
    ...(previous ? [] : [{ ...base, ...actor, action: "create", after: workspace } as const]),
    ...(isDeletion ? [{ ...base, ...actor, action: "delete", before: workspace } as const] : []),
    ...(isChanged ? [{ ...base, action: "write", before: previous, after: workspace } as const] : []),
    ...(isNewBuild
      ? [{ ...buildBase, ...actor, action: build.transition, before: before?.build, after: build } as const]
      : []),
    ...(isNewlyCanceled ? [{ ...buildBase, action: "write", before: before?.job, after: job } as const] : []),
  ];
};

/** Adds an audit log entry to a person's change of the deadline. Changes because of activity are not logged. */
export const auditExtension = ({ workspace, build }: WorkspaceState, decision: Decision, now: number): Decision => {
  if (decision.kind !== "change") return decision;
  const entry = insertAudit({
    now,
    action: "write",
    resource_type: "workspace",
    resource_id: workspace.id,
    target: workspace.name,
    organization_id: workspace.organization_id,
    workspace_id: workspace.id,
    before: { deadline: build.deadline },
    after: { deadline: decision.state.build.deadline },
  });
  return { ...decision, writes: [...decision.writes, entry] };
};

/** Returns the audit log entry for a replaced state, without the state, which may contain secrets. */
export const auditState = ({ workspace }: WorkspaceState, build_id: string, now: number): Statement =>
  insertAudit({
    now,
    action: "write",
    resource_type: "workspace_build",
    resource_id: build_id,
    target: workspace.name,
    organization_id: workspace.organization_id,
    workspace_id: workspace.id,
    after: { state: "replaced" },
    additional: { workspace_name: workspace.name, workspace_id: workspace.id },
  });
