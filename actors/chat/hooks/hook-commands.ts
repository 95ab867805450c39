// Builds the state machine's command for a request, so that the actor can reject the request before a hook is asked about it.
import type { Store } from "#db/engine/store.ts";
import type { ChatState } from "../machine/chat-state.ts";
import type { CommandInput, CompactionRequest, ToolResult } from "../machine/decision.ts";
import { hasNoAnswer, readEdited } from "../storage/read.ts";

/** What the state machine needs to know of a request. The content is missing, because a hook may still change it. */
export type CheckedCommand =
  | { readonly type: "send"; readonly behavior: "queue" | "interrupt" }
  | { readonly type: "edit"; readonly message_id: number }
  | { readonly type: "compact"; readonly request: CompactionRequest }
  | { readonly type: "complete"; readonly results: readonly ToolResult[] };

const EMPTY_MESSAGE = { content: [], created_by: "", model_config_id: null };

/** Throws 400 or 404 for a message that cannot be edited. */
export const buildCheckedCommand = async (
  { store }: { readonly store: Store },
  { key }: ChatState,
  requested: CheckedCommand,
): Promise<CommandInput> => {
  if (requested.type === "complete") return { type: "complete_requires_action", results: requested.results };
  if (requested.type === "compact") {
    return { type: "request_compaction", request: requested.request, is_empty: await hasNoAnswer(store, key) };
  }
  if (requested.type === "send") {
    return { type: "send", behavior: requested.behavior, message: { ...EMPTY_MESSAGE, id: 0, reasoning_effort: "" } };
  }
  const { last_assistant_id } = await readEdited(store, key, requested.message_id);
  const message = { ...EMPTY_MESSAGE, role: "user" as const, visibility: "both" as const, usage: null };
  return { type: "edit", from: requested.message_id, last_assistant_id, message };
};
