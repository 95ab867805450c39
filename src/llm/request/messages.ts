// Adapts a prompt to its receiver, whatever its history: every call has one result directly after it, IDs and names have the receiver's
// format, roles alternate, nothing is blank, and the last message is not the model's. Pure.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { pairCalls } from "./calls.ts";
import type { MessagesForm } from "./form.ts";
import type { Receiver } from "./receivers.ts";

type Role<R extends LanguageModelV4Message["role"]> = Extract<LanguageModelV4Message, { role: R }>;
type Turn = Role<"user" | "assistant" | "tool">;
type TextPart = Extract<Role<"user">["content"][number], { type: "text" }>;

/** Returns the prompt in the form that this receiver accepts. */
export const toMessages = (prompt: LanguageModelV4Prompt, form: MessagesForm): LanguageModelV4Prompt => {
  const system = prompt.flatMap(({ role, content }) => (role === "system" && content.trim() !== "" ? [content] : []));
  const conversation = prompt
    .filter((message): message is Turn => message.role !== "system")
    .map((message) => removeBlanks(message, form.receiver));
  const turns = alternateRoles(
    form.hasTools ? pairCalls(conversation, form) : conversation.flatMap(describeCalls),
    form,
  );
  const words = system.join("\n\n");
  if (words === "") return turns;
  if (form.hasSystem) return [{ role: "system", content: words }, ...turns];
  const [first, ...rest] = turns;
  return [{ role: "user", content: joinTexts([toTextPart(words), ...toUserContent(first)], form.receiver) }, ...rest];
};

const toUserContent = (message: Turn | undefined): Role<"user">["content"] =>
  message?.role === "user" ? message.content : [];

const toTextPart = (text: string): TextPart => ({ type: "text", text });

const isBlank = (part: { readonly type: string; readonly text?: unknown }): boolean =>
  part.type === "text" && typeof part.text === "string" && part.text.trim() === "";

const isExecuted = (part: Role<"assistant">["content"][number]): boolean =>
  part.type === "tool-call" && part.providerExecuted === true;

/** Providers refuse blank texts, and reasoning without anything after it, which interrupted answers contain. */
const removeBlanks = (message: Turn, { keepsExecuted }: Receiver): Turn => {
  if (message.role === "user") return { ...message, content: message.content.filter((part) => !isBlank(part)) };
  if (message.role === "tool") return message;
  const content = message.content.filter((part) => {
    if (part.type === "tool-result" || isExecuted(part)) return keepsExecuted(part.providerOptions ?? {});
    return !isBlank(part);
  });
  const end = content.findLastIndex(({ type }) => type !== "reasoning") + 1;
  return { ...message, content: content.slice(0, end) };
};

/** Converts calls and results to text, for a request without tools. */
const describeCalls = (message: Turn): Turn[] => {
  if (message.role === "user") return [message];
  if (message.role === "tool") {
    const content = message.content.flatMap((part) =>
      part.type === "tool-result"
        ? [
            toTextPart(
              `[Result of ${part.toolName}: ${JSON.stringify("value" in part.output ? part.output.value : null)}]`,
            ),
          ]
        : [],
    );
    return [{ role: "user", content }];
  }
  const content = message.content.flatMap((part) => {
    if (part.type !== "tool-call") return part.type === "text" || part.type === "reasoning" ? [part] : [];
    return part.providerExecuted ? [] : [toTextPart(`[Called ${part.toolName} with ${JSON.stringify(part.input)}]`)];
  });
  return [{ ...message, content }];
};

const CONTINUE = "Continue.";
const OPENING_TEXT = "[The conversation began earlier.]";
const ACKNOWLEDGEMENT = "OK.";

/** Merges adjacent messages of one role, and adds messages that the receiver requires for a valid order. */
const alternateRoles = (all: readonly Turn[], { receiver }: MessagesForm): Turn[] => {
  const turns: Turn[] = [];
  for (const message of all) {
    if (message.content.length === 0) continue;
    const last = turns.at(-1);
    if (last?.role === "user" && message.role === "user") {
      turns[turns.length - 1] = { ...last, content: joinTexts([...last.content, ...message.content], receiver) };
    } else if (last?.role === "assistant" && message.role === "assistant") {
      turns[turns.length - 1] = { ...last, content: joinAnswers(last, message, receiver) };
    } else {
      if (turns.length === 0 && message.role !== "user")
        turns.push({ role: "user", content: [toTextPart(OPENING_TEXT)] });
      if (last?.role === "tool" && message.role === "user" && !receiver.userAfterTool) {
        turns.push({ role: "assistant", content: [toTextPart(ACKNOWLEDGEMENT)] });
      }
      turns.push(message.role === "user" ? { ...message, content: joinTexts(message.content, receiver) } : message);
    }
  }
  const last = turns.at(-1);
  const needsUserTurn =
    last === undefined || (last.role === "assistant" && !(receiver.resumesPaused && isPaused(last)));
  const complete: Turn[] = needsUserTurn ? [...turns, { role: "user", content: [toTextPart(CONTINUE)] }] : turns;
  return receiver.thoughtsFirst ? complete.map(moveThoughtsFirst) : complete;
};

/** An answer that was merged from several may have reasoning in its middle. */
const moveThoughtsFirst = (message: Turn): Turn =>
  message.role !== "assistant" || message.content[0]?.type === "reasoning"
    ? message
    : { ...message, content: message.content.filter(({ type }) => type !== "reasoning") };

/** True if the provider paused its response during work that it does itself. */
const isPaused = ({ content }: Role<"assistant">): boolean => content.some(isExecuted);

/** Returns a message's parts, with its texts joined if the receiver requires a plain string. */
const joinTexts = (parts: Role<"user">["content"], { joinsText }: Receiver): Role<"user">["content"] => {
  if (!joinsText) return parts;
  const joinedParts: Role<"user">["content"] = [];
  for (const part of parts) {
    const last = joinedParts.at(-1);
    if (part.type === "text" && last?.type === "text")
      joinedParts[joinedParts.length - 1] = toTextPart(`${last.text}\n\n${part.text}`);
    else joinedParts.push(part);
  }
  return joinedParts;
};

const joinAnswers = (
  { content: first }: Role<"assistant">,
  { content: second }: Role<"assistant">,
  { joinsText }: Receiver,
): Role<"assistant">["content"] => {
  const at = second.findIndex(({ type }) => type === "text");
  const isSeparate = joinsText && at >= 0 && first.some(({ type }) => type === "text");
  const spaced = isSeparate
    ? second.map((part, index) => (index === at && part.type === "text" ? { ...part, text: `\n\n${part.text}` } : part))
    : second;
  return [...first, ...spaced];
};
