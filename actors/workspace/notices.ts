// Builds notifications for a workspace's owner, which are derived from the states before and after a message, so that no message can omit
// one (rule NO-3), and for the people with whom the workspace is shared (rule NO-14). Pure; used only by the workspace actor.
import { toRfc3339 } from "#base/clock.ts";
import type { Statement } from "#db/engine/sql.ts";
import { insertNotification, type Notice, retractNotice } from "#db/notifications/notifications.ts";
import type { Acl } from "#schema/workspaces/acl.ts";
import { toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { WorkspaceState } from "./decision.ts";

type Draft = Pick<Notice, "kind" | "values" | "dedupe"> & { readonly path?: string };

/** `before`: undefined for a new workspace. `now`: milliseconds since 1970. */
export const buildWorkspaceNotices = (
  before: WorkspaceState | undefined,
  { workspace, build, job }: WorkspaceState,
  now: number,
): readonly Statement[] => {
  if (!before || workspace.owner_id === PREBUILDS_USER_ID) return [];
  const drafts: Draft[] = [];
  const names = { workspace: workspace.name };
  const hasEnded = before.build.id === build.id && before.job.completed_at === null && job.completed_at !== null;
  if (hasEnded && job.error !== "") {
    const values = { ...names, transition: build.transition, number: String(build.build_number), error: job.error };
    drafts.push({ kind: "workspace_build_failed", values, dedupe: `build_failed:${build.id}` });
  }
  if (hasRestored(before, { build, job }) && before.build.initiator_id !== workspace.owner_id) {
    drafts.push({ kind: "workspace_files_replaced", values: names, dedupe: `files_replaced:${before.build.id}` });
  }
  if (before.workspace.dormant_at === null && workspace.dormant_at !== null && build.reason === "dormancy") {
    const { deleting_at } = workspace;
    const deletion = deleting_at === null ? "" : `It will be deleted at ${toRfc3339(deleting_at).slice(0, 10)}.`;
    drafts.push({
      kind: "workspace_dormant",
      values: { ...names, deletion },
      dedupe: `dormant:${workspace.id}:${workspace.dormant_at}`,
    });
  }
  const reason = describeDeletion(build, workspace.owner_id);
  if (!before.workspace.deleted && workspace.deleted && reason !== "") {
    const values = { ...names, reason };
    drafts.push({ kind: "workspace_deleted", values, dedupe: `deleted:${workspace.id}`, path: "/workspaces" });
  }
  const common = { now, user_id: workspace.owner_id, targets: [workspace.id], path: `/workspaces/${workspace.id}` };
  return drafts.map((draft) => insertNotification({ ...common, ...draft }));
};

/** Returns true if a build that restores a snapshot has just succeeded. A follow-up build may have begun in the same message. */
const hasRestored = (before: WorkspaceState, { build, job }: Pick<WorkspaceState, "build" | "job">): boolean => {
  if (before.build.restored_snapshot_id === null || before.job.completed_at !== null) return false;
  // A fork starts with files of another workspace, which is not a restore.
  if (before.build.restored_workspace_id !== before.workspace.id) return false;
  return before.build.id === build.id ? toJobStatus(job) === "succeeded" : before.build.followed_by?.id === build.id;
};

/** Returns why the workspace was deleted; empty if its owner deleted it. */
const describeDeletion = ({ reason, initiator_id }: WorkspaceState["build"], owner_id: string): string => {
  if (reason === "autodelete") return "The server deleted it because it was dormant for too long.";
  return initiator_id === owner_id ? "" : "An administrator deleted it. The audit log says who did.";
};

type SharedWorkspace = Pick<WorkspaceState["workspace"], "id" | "name" | "user_acl">;

const toShareDedupe = ({ id }: Pick<SharedWorkspace, "id">): string => `shared:${id}`;

/** Returns the notifications for the users who are new in `user_acl`. `by` is the username of the person who shared the workspace. */
export const buildShareNotices = (
  workspace: SharedWorkspace,
  user_acl: Acl,
  by: string,
  now: number,
): readonly Statement[] =>
  Object.entries(user_acl)
    .filter(([user_id]) => workspace.user_acl[user_id] === undefined)
    .map(([user_id, role]) =>
      insertNotification({
        now,
        user_id,
        kind: "workspace_shared",
        values: { by, workspace: workspace.name, access: role === "admin" ? ", and start, stop and change it" : "" },
        targets: [workspace.id],
        path: `/workspaces/${workspace.id}`,
        dedupe: toShareDedupe(workspace),
      }),
    );

/** Removes the notifications of users who are no longer in `user_acl`, because their link does not work anymore. */
export const retractShareNotices = (workspace: SharedWorkspace, user_acl: Acl): readonly Statement[] =>
  Object.keys(workspace.user_acl)
    .filter((user_id) => user_acl[user_id] === undefined)
    .map((user_id) => retractNotice({ user_id, dedupe: toShareDedupe(workspace) }));
