// The label and glyph of a task in lists. Pure.
import type { Task } from "#schema/tasks/task.ts";
import { TASK_STATE_WORDS } from "#schema/tasks/task-state-words.ts";
import type { StateKind } from "../../data/states.ts";

/** Converts an optional ID to a string. */
export const toId = (id: Task["chat_id"]): string | undefined => {
  if (id === null || typeof id === "string") return id ?? undefined;
  return id.valid ? id.uuid : undefined;
};

type TaskState = { readonly kind: StateKind; readonly label: string };

const KINDS: Readonly<Record<NonNullable<Task["current_state"]>["state"], StateKind>> = {
  working: "busy",
  idle: "needs",
  complete: "done",
  failed: "failed",
};

export const getTaskState = ({ status, workspace_status, current_state }: Task): TaskState => {
  switch (status) {
    case "active":
      return current_state
        ? { kind: KINDS[current_state.state], label: TASK_STATE_WORDS[current_state.state] }
        : { kind: "busy", label: "active" };
    case "pending":
      return { kind: "busy", label: workspace_status === "stopping" ? "pausing" : "pending" };
    case "initializing":
      return { kind: "busy", label: "initializing" };
    case "paused":
      return { kind: "stopped", label: "paused" };
    case "error":
      return { kind: "failed", label: "failed" };
    default:
      return { kind: "failed", label: workspace_status === "deleting" ? "deleting" : "unknown" };
  }
};

/** Returns the text next to the state. */
export const formatTaskText = ({ current_state, display_name, name }: Task): string =>
  current_state?.message || (display_name === "" ? name : "");
