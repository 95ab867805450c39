// Tasks in the words and glyphs of lists. Pure.
import type { Task } from "#schema/tasks/task.ts";
import type { StateKind } from "../../data/states.ts";

/** An id that may be missing. */
export const toId = (id: Task["chat_id"]): string | undefined => {
  if (id === null || typeof id === "string") return id ?? undefined;
  return id.valid ? id.uuid : undefined;
};

type Shown = { readonly kind: StateKind; readonly words: string };

const OF_CHAT: Readonly<Record<NonNullable<Task["current_state"]>["state"], Shown>> = {
  working: { kind: "busy", words: "at work" },
  idle: { kind: "needs", words: "waits for you" },
  complete: { kind: "done", words: "has answered" },
  failed: { kind: "failed", words: "failed" },
};

export const taskState = ({ status, workspace_status, current_state }: Task): Shown => {
  switch (status) {
    case "active":
      return current_state ? OF_CHAT[current_state.state] : { kind: "busy", words: "begins" };
    case "pending":
      return { kind: "busy", words: workspace_status === "stopping" ? "is being paused" : "waits for a build" };
    case "initializing":
      return { kind: "busy", words: "workspace starts" };
    case "paused":
      return { kind: "stopped", words: "paused" };
    case "error":
      return { kind: "failed", words: "failed" };
    default:
      return { kind: "failed", words: workspace_status === "deleting" ? "is being deleted" : "workspace is lost" };
  }
};

/** What is said of it alongside the state. */
export const taskWords = ({ current_state, display_name, name }: Task): string =>
  current_state?.message || (display_name === "" ? name : "");
