// Which tool calls of a history still lack a result. Pure; used by the state machine and by tests that read whole histories.
import { noteIn } from "#src/llm/call-notes.ts";
import type { Message, PendingCall } from "./decision.ts";

/** The unanswered calls after one more message: its calls come in, its results take theirs out. */
export const pendingAfter = (pending: readonly PendingCall[], message: Message): readonly PendingCall[] => {
  if (message.role !== "assistant" && message.role !== "tool") return pending;
  let next = pending;
  for (const part of message.content) {
    const { tool_call_id } = part;
    if (tool_call_id === undefined || part.provider_executed) continue;
    if (part.type === "tool-call") {
      const { tool_name = "", args } = part;
      const note = noteIn(part);
      next = [...next, { message_id: message.id, tool_call_id, tool_name, args, ...(note ? { note } : {}) }];
    }
    if (part.type === "tool-result") next = next.filter((call) => call.tool_call_id !== tool_call_id);
  }
  return next;
};
