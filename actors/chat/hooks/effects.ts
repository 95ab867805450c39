// Converts the answers of lifecycle hooks to parts of the user's message, rows that only the model sees, and rows that only people see.
// Pure.
import type { ChatError } from "#schema/chats/chat-error.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import type { HookAnswer, HookFailure } from "#src/hooks/protocol.ts";
import type { NewMessage } from "../machine/decision.ts";

const toContextPart = (text: string): MessagePart => ({ type: "hook-context", text });
const toNoticePart = (text: string): MessagePart => ({ type: "hook-notice", text });

const toRow = (role: "user" | "system", visibility: "user" | "model", part: MessagePart): NewMessage => ({
  role,
  visibility,
  content: [part],
  created_by: null,
  model_config_id: null,
  usage: null,
});

/** Returns the rows of an answer: the context for the model, then the message for people. */
export const toEffectRows = ({ model_context = "", user_message = "" }: HookAnswer): NewMessage[] => [
  ...(model_context === "" ? [] : [toRow("user", "model", toContextPart(model_context))]),
  ...(user_message === "" ? [] : [toRow("system", "user", toNoticePart(user_message))]),
];

/** Returns whether the row contains only context from hooks for the model. */
export const isHookRow = ({ role, content }: Pick<NewMessage, "role" | "content">): boolean =>
  role === "user" && content.length > 0 && content.every(({ type }) => type === "hook-context");

/** Returns the content of a prompt to store: its text or the hook's replacement, its files, and the hook's context and message. */
export const toPromptContent = (content: readonly MessagePart[], answer: HookAnswer): MessagePart[] => {
  const { permission, model_context = "", user_message = "" } = answer;
  const override = permission?.decision === "allow" ? permission.input_override : undefined;
  const prompt: readonly MessagePart[] = override
    ? [{ type: "text", text: String(override.prompt) }, ...content.filter(({ type }) => type !== "text")]
    : content;
  return [
    ...prompt,
    ...(model_context === "" ? [] : [toContextPart(model_context)]),
    ...(user_message === "" ? [] : [toNoticePart(user_message)]),
  ];
};

/** Returns the prompt text that hooks receive. */
export const toPromptText = (content: readonly MessagePart[]): string =>
  content.flatMap(({ type, text }) => (type === "text" && text ? [text] : [])).join("\n");

/** Returns the error of a turn that has ended because a hook failed. */
export const toHookError = (failure: HookFailure): ChatError => ({
  kind: "hook_dispatch_failed",
  message: "A lifecycle hook gave no valid answer, so the chat stopped. Send a message to try again.",
  detail: failure.message,
  retryable: false,
});

/** Moves hook rows that are between calls and their results behind the results, because providers require results directly after calls. */
export const moveBehindResults = <M extends Pick<NewMessage, "role" | "content">>(history: readonly M[]): M[] => {
  const ordered: M[] = [];
  let hookRows: M[] = [];
  for (const message of history) {
    if (isHookRow(message)) hookRows.push(message);
    else {
      if (message.role !== "tool") {
        ordered.push(...hookRows);
        hookRows = [];
      }
      ordered.push(message);
    }
  }
  return [...ordered, ...hookRows];
};
