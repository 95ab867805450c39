// Finds the tool calls of a history that have no result yet, and the question that has no answer yet. Pure; used by the state machine and
// by tests that read whole histories.
import { getNote } from "#src/llm/call-notes.ts";
import type { Message, PendingCall } from "./decision.ts";

/** Returns the open calls after one more message: adds its calls and removes those it has results for. */
export const updatePendingCalls = (pending: readonly PendingCall[], message: Message): readonly PendingCall[] => {
  if (message.role !== "assistant" && message.role !== "tool") return pending;
  let next = pending;
  for (const part of message.content) {
    const { tool_call_id } = part;
    if (tool_call_id === undefined || part.provider_executed) continue;
    if (part.type === "tool-call") {
      const { tool_name = "", args } = part;
      const note = getNote(part);
      next = [...next, { message_id: message.id, tool_call_id, tool_name, args, ...(note ? { note } : {}) }];
    }
    if (part.type === "tool-result") next = next.filter((call) => call.tool_call_id !== tool_call_id);
  }
  return next;
};

/** Tools that end a turn with a question to a person. */
const QUESTIONS: readonly string[] = ["ask_user_question", "propose_plan"];

/**
 * Returns the tool whose question still waits for a person after one more message, or null. A person's message answers the question; a
 * model's message moves past it.
 */
export const updatePendingQuestion = (
  requested: string | null,
  { role, visibility, content }: Pick<Message, "role" | "visibility" | "content">,
): string | null => {
  if (role === "user" || (role === "assistant" && visibility !== "model")) return null;
  if (role !== "tool") return requested;
  const question = content.find(({ tool_name = "", is_error }) => !is_error && QUESTIONS.includes(tool_name));
  return question?.tool_name ?? requested;
};
