// Titles and summaries as text: fallback titles, and how titles and summaries are extracted from a model's answer (facts/chats 4.10 and
// 4.11). Pure.
import { trimEnd } from "#base/text/trim.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { toLine } from "#schema/text.ts";

const MAX_TITLE_CHARS = 80;
const MAX_TITLE_WORDS = 8;
const MAX_LABEL_WORDS = 5;
const MAX_SUMMARY_CHARS = 600;

/** Returns the first six words of the message, at most 80 characters. */
export const toFallbackTitle = (content: readonly MessagePart[]): string => {
  const text = toLine(content.map((part) => (part.type === "text" ? part.text : part.content) ?? "").join(" "));
  const words = text.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return "New Chat";
  const title = words.slice(0, 6).join(" ");
  const letters = [...title];
  if (letters.length > MAX_TITLE_CHARS) return `${letters.slice(0, MAX_TITLE_CHARS - 1).join("")}…`;
  return words.length > 6 && letters.length < MAX_TITLE_CHARS ? `${title}…` : title;
};

/** Quotes, emphasis and spaces at the end of a title. */
const QUOTES = "\"'`“”‘’* ";

const cleanTitle = (text: string): string =>
  trimEnd(toLine(text).replaceAll(/\s+/g, " "), QUOTES).replace(/^["'`“”‘’*#\s]+/, "");

/** Openings with which weak models talk about the title or their reasoning instead of giving a title. */
const TALK =
  /^(here('s| is)|i('ll| will| need| would| should| can|'m)|let me|let's|the user|okay|ok,|sure,|(a )?thinking process|we need|based on|this (title|conversation))\b|:$/i;

/** Extracts the title from an answer by removing tags, labels, code fences, surrounding JSON and trailing comments. */
const extractTitle = (answer: string): string => {
  const thought = answer.replace(
    /^\s*(<(think|thinking|reasoning)>[\s\S]*?<\/\2>|```(thinking|reasoning)\n[\s\S]*?```)/i,
    "",
  );
  const tagged = /<title>([^<]*)(<\/title>|$)/i.exec(thought)?.[1]?.trim() || undefined;
  const inJson = /"title"\s*:\s*"((?:[^"\\]|\\.)*)"/i.exec(thought)?.[1];
  const quoted = /^\s*[“"]([^“”"]+)[”"]\s*$/.exec(thought)?.[1];
  const marked = tagged ?? inJson ?? quoted;
  if (marked !== undefined) return marked;
  const lines = thought.split("\n").map((line) => line.replace(LABEL, "").trim());
  const message = lines.filter((line) => line !== "" && !/^(```|~~~)/.test(line));
  return message.find((line) => !TALK.test(line)) ?? "";
};

const LABEL = /^[\s>*_#"'`-]*((title|chat title|conversation title|suggested title)[\s*_]*:[\s*_]*)?/i;

/** Returns a title of two to eight words, or undefined when the model answered something else. */
export const parseTitle = (answer: string): string | undefined => {
  const title = cleanTitle(extractTitle(answer)).replace(/\.$/, "");
  const words = title === "" ? 0 : title.split(" ").length;
  return words < 1 || words > MAX_TITLE_WORDS ? undefined : [...title].slice(0, MAX_TITLE_CHARS).join("");
};

/**
 * Returns a label of two to five words for lists. Returns undefined for sentences, several lines, or text that names the agent as the
 * subject.
 */
export const parseLabel = (answer: string): string | undefined => {
  if (answer.trim().includes("\n")) return undefined;
  const label = cleanTitle(answer);
  const words = label.split(" ").length;
  if (words < 2 || words > MAX_LABEL_WORDS || /[.!?]$/.test(label)) return undefined;
  return /^(the |an? )?(agent|i|it|the|we)\b/i.test(label) ? undefined : label;
};

/** Returns one to three sentences about the whole chat, or undefined when the answer contains none. */
export const summaryFrom = (answer: string): string | undefined => {
  const summary = answer.replaceAll(/\s+/g, " ").trim();
  return summary === "" ? undefined : [...summary].slice(0, MAX_SUMMARY_CHARS).join("");
};

/** Label of an interrupted turn without a usable label from a model. */
export const STOPPED = "stopped before the end";

/** Returns the label of a turn without a usable label from a model. */
export const formatLabel = (status: string): string => {
  if (status === "error") return "hit an error";
  if (status === "requires_action") return "waiting for user input";
  return status === "waiting" ? "finished latest turn" : "still working on request";
};

/** Maximum characters of a call's arguments in a transcript. */
const MAX_CALL_CHARS = 120;

type SpokenMessage = { readonly role: string; readonly content: readonly MessagePart[] };
const formatMessage = ({ content }: SpokenMessage): string =>
  content
    .flatMap(({ type, text, tool_name, args }) => {
      if (type === "tool-call")
        return [`[calls ${tool_name} ${takeChars(JSON.stringify(args ?? {}), MAX_CALL_CHARS)}]`];
      return type === "text" && text ? [text] : [];
    })
    .join("\n");
const takeChars = (text: string, count: number): string => [...text].slice(0, count).join("");

/** Formats the messages as plain text of at most `limit` characters: the first user turn and the newest messages. */
export const formatTranscript = (messages: readonly SpokenMessage[], limit = 6_000): string => {
  const spoken = messages.filter(({ role }) => role === "user" || role === "assistant");
  const lines = spoken
    .map((one) => `${one.role}: ${takeChars(formatMessage(one), 1_000)}`)
    .filter((line) => line.includes(": "));
  const [opening = "", ...rest] = lines;
  const kept: string[] = [];
  let remainingChars = limit - [...opening].length;
  for (const line of rest.slice(-6).reverse()) {
    const cut = takeChars(line, Math.max(0, remainingChars));
    remainingChars -= [...cut].length;
    if (cut !== "") kept.unshift(cut);
  }
  return [opening, ...kept].join("\n");
};
