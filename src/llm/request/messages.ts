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
export const messagesFor = (prompt: LanguageModelV4Prompt, form: MessagesForm): LanguageModelV4Prompt => {
  const system = prompt.flatMap(({ role, content }) => (role === "system" && content.trim() !== "" ? [content] : []));
  const said = prompt
    .filter((message): message is Turn => message.role !== "system")
    .map((message) => withoutBlanks(message, form.receiver));
  const turns = alternating(form.hasTools ? pairCalls(said, form) : said.flatMap(inWords), form);
  const words = system.join("\n\n");
  if (words === "") return turns;
  if (form.hasSystem) return [{ role: "system", content: words }, ...turns];
  const [first, ...rest] = turns;
  return [{ role: "user", content: joined([textPart(words), ...userContent(first)], form.receiver) }, ...rest];
};

const userContent = (message: Turn | undefined): Role<"user">["content"] =>
  message?.role === "user" ? message.content : [];

const textPart = (text: string): TextPart => ({ type: "text", text });

const isBlank = (part: { readonly type: string; readonly text?: unknown }): boolean =>
  part.type === "text" && typeof part.text === "string" && part.text.trim() === "";

const isExecuted = (part: Role<"assistant">["content"][number]): boolean =>
  part.type === "tool-call" && part.providerExecuted === true;

/** Providers refuse blank texts, and reasoning without anything after it, which interrupted answers contain. */
const withoutBlanks = (message: Turn, { keepsExecuted }: Receiver): Turn => {
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
const inWords = (message: Turn): Turn[] => {
  if (message.role === "user") return [message];
  if (message.role === "tool") {
    const content = message.content.flatMap((part) =>
      part.type === "tool-result"
        ? [
            textPart(
              `[Result of ${part.toolName}: ${JSON.stringify("value" in part.output ? part.output.value : null)}]`,
            ),
          ]
        : [],
    );
    return [{ role: "user", content }];
  }
  const content = message.content.flatMap((part) => {
    if (part.type !== "tool-call") return part.type === "text" || part.type === "reasoning" ? [part] : [];
    return part.providerExecuted ? [] : [textPart(`[Called ${part.toolName} with ${JSON.stringify(part.input)}]`)];
  });
  return [{ ...message, content }];
};

const CONTINUE = "Continue.";
const BEGINNING = "[The conversation began earlier.]";
const ACKNOWLEDGED = "OK.";

/** Merges adjacent messages of one role, and adds messages that the receiver requires for a valid order. */
const alternating = (all: readonly Turn[], { receiver }: MessagesForm): Turn[] => {
  const turns: Turn[] = [];
  for (const message of all) {
    if (message.content.length === 0) continue;
    const last = turns.at(-1);
    if (last?.role === "user" && message.role === "user") {
      turns[turns.length - 1] = { ...last, content: joined([...last.content, ...message.content], receiver) };
    } else if (last?.role === "assistant" && message.role === "assistant") {
      turns[turns.length - 1] = { ...last, content: joinedAnswers(last, message, receiver) };
    } else {
      if (turns.length === 0 && message.role !== "user") turns.push({ role: "user", content: [textPart(BEGINNING)] });
      if (last?.role === "tool" && message.role === "user" && !receiver.userAfterTool) {
        turns.push({ role: "assistant", content: [textPart(ACKNOWLEDGED)] });
      }
      turns.push(message.role === "user" ? { ...message, content: joined(message.content, receiver) } : message);
    }
  }
  const last = turns.at(-1);
  const isOpen = last === undefined || (last.role === "assistant" && !(receiver.resumesPaused && isPaused(last)));
  const ended: Turn[] = isOpen ? [...turns, { role: "user", content: [textPart(CONTINUE)] }] : turns;
  return receiver.thoughtsFirst ? ended.map(withThoughtsFirst) : ended;
};

/** An answer that was merged from several may have reasoning in its middle. */
const withThoughtsFirst = (message: Turn): Turn =>
  message.role !== "assistant" || message.content[0]?.type === "reasoning"
    ? message
    : { ...message, content: message.content.filter(({ type }) => type !== "reasoning") };

/** True if the provider paused its response during work that it does itself. */
const isPaused = ({ content }: Role<"assistant">): boolean => content.some(isExecuted);

/** Returns a message's parts, with its texts joined if the receiver requires a plain string. */
const joined = (parts: Role<"user">["content"], { joinsText }: Receiver): Role<"user">["content"] => {
  if (!joinsText) return parts;
  const made: Role<"user">["content"] = [];
  for (const part of parts) {
    const last = made.at(-1);
    if (part.type === "text" && last?.type === "text") made[made.length - 1] = textPart(`${last.text}\n\n${part.text}`);
    else made.push(part);
  }
  return made;
};

const joinedAnswers = (
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
