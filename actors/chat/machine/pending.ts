// Finds the tool calls in a history that have no result yet, and the question that has no answer yet. Pure. Used by the state machine, and
// by tests that read whole histories.
import { getNote } from "#src/llm/call-notes.ts";
import type { Message, PendingCall } from "./decision.ts";

/** Returns the calls without a result after one more message: adds the message's calls and removes the calls that it answers. */
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
const QUESTION_TOOLS: readonly string[] = ["ask_user_question", "propose_plan"];

/**
 * Returns the name of the tool that asked the open question after one more message, or null if no question is open. A message from a
 * person, or a message from the model that users can see, closes the question.
 */
export const updatePendingQuestion = (
  askedBy: string | null,
  { role, visibility, content }: Pick<Message, "role" | "visibility" | "content">,
): string | null => {
  if (role === "user" || (role === "assistant" && visibility !== "model")) return null;
  if (role !== "tool") return askedBy;
  const question = content.find(({ tool_name = "", is_error }) => !is_error && QUESTION_TOOLS.includes(tool_name));
  return question?.tool_name ?? askedBy;
};
