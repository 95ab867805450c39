// Stores notes about changes of a workspace's deadline and about the server's automatic actions. A note names who or what made the change,
// the time, and the old and new deadline. Pure.
import type { Statement } from "#db/engine/sql.ts";
import { insertActivity } from "#db/workspaces/activity.ts";
import type { ActivityReason } from "#schema/workspaces/schedule.ts";
import type { WorkspaceState } from "./decision.ts";

export type Originator = {
  readonly kind: "user" | "agent" | "server";
  readonly id: string | null;
  readonly name: string;
};

export const SERVER: Originator = { kind: "server", id: null, name: "server" };

/** Returns the statements that store a note. The old deadline is the deadline of `build`. */
export const insertNote = (
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
