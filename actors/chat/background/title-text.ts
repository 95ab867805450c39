// Titles and summaries as text: fallback titles, and how titles and summaries are extracted from a model's answer (facts/chats 4.10 and
// 4.11). Pure.
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { asLine } from "#schema/text.ts";

const LONGEST = 80;
const TITLE_WORDS = 8;
const LABEL_WORDS = 5;
const SUMMARY_LONGEST = 600;

/** Returns the first six words of the message, at most 80 characters. */
export const fallbackTitle = (content: readonly MessagePart[]): string => {
  const text = asLine(content.map((part) => (part.type === "text" ? part.text : part.content) ?? "").join(" "));
  const words = text.split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return "New Chat";
  const title = words.slice(0, 6).join(" ");
  const letters = [...title];
  if (letters.length > LONGEST) return `${letters.slice(0, LONGEST - 1).join("")}…`;
  return words.length > 6 && letters.length < LONGEST ? `${title}…` : title;
};

const tidy = (text: string): string =>
  asLine(text)
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll(/^["'`“”‘’*#\s]+|["'`“”‘’*\s]+$/g, "");

/** Openings with which weak models talk about the title or their reasoning instead of giving a title. */
const TALK =
  /^(here('s| is)|i('ll| will| need| would| should| can|'m)|let me|let's|the user|okay|ok,|sure,|(a )?thinking process|we need|based on|this (title|conversation))\b|:$/i;

/** Extracts the title from an answer by removing tags, labels, code fences, surrounding JSON and trailing comments. */
const bareTitle = (answer: string): string => {
  const thought = answer.replace(
    /^\s*(<(think|thinking|reasoning)>[\s\S]*?<\/\2>|```(thinking|reasoning)\n[\s\S]*?```)/i,
    "",
  );
  const tagged = /<title>\s*([^<]+?)\s*(<\/title>|$)/i.exec(thought)?.[1];
  const inJson = /"title"\s*:\s*"((?:[^"\\]|\\.)*)"/i.exec(thought)?.[1];
  const quoted = /^\s*[“"]([^“”"]+)[”"]\s*$/.exec(thought)?.[1];
  const marked = tagged ?? inJson ?? quoted;
  if (marked !== undefined) return marked;
  const lines = thought.split("\n").map((line) => line.replace(LABEL, "").trim());
  const said = lines.filter((line) => line !== "" && !/^(```|~~~)/.test(line));
  return said.find((line) => !TALK.test(line)) ?? "";
};

const LABEL = /^[\s>*_#"'`-]*((title|chat title|conversation title|suggested title)\s*[*_]*\s*:[\s*_]*)?/i;

/** Returns a title of two to eight words, or undefined when the model answered something else. */
export const titleFrom = (answer: string): string | undefined => {
  const title = tidy(bareTitle(answer)).replace(/\.$/, "");
  const words = title === "" ? 0 : title.split(" ").length;
  return words < 1 || words > TITLE_WORDS ? undefined : [...title].slice(0, LONGEST).join("");
};

/** Returns a label of two to five words for lists. Returns undefined for sentences, several lines, or text about who did the work. */
export const labelFrom = (answer: string): string | undefined => {
  if (/\S\s*\n\s*\S/.test(answer)) return undefined;
  const label = tidy(answer);
  const words = label.split(" ").length;
  if (words < 2 || words > LABEL_WORDS || /[.!?]$/.test(label)) return undefined;
  return /^(the |an? )?(agent|i|it|the|we)\b/i.test(label) ? undefined : label;
};

/** Returns one to three sentences about the whole chat, or undefined when the answer contains none. */
export const summaryFrom = (answer: string): string | undefined => {
  const summary = answer.replaceAll(/\s+/g, " ").trim();
  return summary === "" ? undefined : [...summary].slice(0, SUMMARY_LONGEST).join("");
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
const CALL_LETTERS = 120;

type Said = { readonly role: string; readonly content: readonly MessagePart[] };
const toWords = ({ content }: Said): string =>
  content
    .flatMap(({ type, text, tool_name, args }) => {
      if (type === "tool-call") return [`[calls ${tool_name} ${first(JSON.stringify(args ?? {}), CALL_LETTERS)}]`];
      return type === "text" && text ? [text] : [];
    })
    .join("\n");
const first = (text: string, letters: number): string => [...text].slice(0, letters).join("");

/** Formats the messages as plain text of at most `limit` characters: the first user turn and the newest messages. */
export const formatTranscript = (messages: readonly Said[], limit = 6_000): string => {
  const spoken = messages.filter(({ role }) => role === "user" || role === "assistant");
  const lines = spoken.map((one) => `${one.role}: ${first(toWords(one), 1_000)}`).filter((line) => line.includes(": "));
  const [opening = "", ...rest] = lines;
  const kept: string[] = [];
  let left = limit - [...opening].length;
  for (const line of rest.slice(-6).reverse()) {
    const cut = first(line, Math.max(0, left));
    left -= [...cut].length;
    if (cut !== "") kept.unshift(cut);
  }
  return [opening, ...kept].join("\n");
};
