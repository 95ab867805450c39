// Entries about changes of a workspace's deadline and about the server's automatic actions: who changed it, when, and from which deadline
// to which. Pure.
import type { Statement } from "#db/engine/sql.ts";
import { insertActivity } from "#db/workspaces/activity.ts";
import type { ActivityReason } from "#schema/workspaces/schedule.ts";
import type { WorkspaceState } from "./decision.ts";

/** Who or what changed the times of a workspace. */
export type Originator = {
  readonly kind: "user" | "agent" | "server";
  readonly id: string | null;
  readonly name: string;
};

export const SERVER: Originator = { kind: "server", id: null, name: "server" };

/** Returns the statements that store one entry; `state` is the previous one. */
export const note = (
  { workspace, build }: Pick<WorkspaceState, "workspace" | "build">,
  at: number,
  entry: { reason: ActivityReason; detail: string; by?: Originator; new_deadline: number | null },
): Statement[] => {
  const { reason, detail, by = SERVER, new_deadline } = entry;
  const actor = { actor_kind: by.kind, actor_id: by.id, actor_name: by.name };
  return insertActivity({
    workspace_id: workspace.id,
    at,
    reason,
    detail,
    ...actor,
    old_deadline: build.deadline,
    new_deadline,
  });
};
