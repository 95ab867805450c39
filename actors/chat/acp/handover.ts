// Builds a coding agent's prompt: the messages since its last prompt, or the whole history as text if its session has not received it.
// Pure.
import type { MessageRow } from "#db/chats/messages.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isHookRow } from "../hooks/effects.ts";

/** The session that a chat continues, and the ID of the last message that the session has received. */
export type StoredSession = { readonly session_id: string; readonly through: number };

type Row = Pick<MessageRow, "id" | "role" | "content">;

/** Maximum characters of history for a new session. Its beginning is cut off. */
const MAX_HISTORY = 200_000;
/** Maximum characters of a call's arguments or result in that history. */
const MAX_VALUE = 2_000;

export type Handover = {
  /** Whether the session's last message is still in the history, so that only newer messages need to be sent. */
  readonly isChatInSession: boolean;
  /** New text from people and hooks. */
  readonly newText: string;
  /** Whether a person has written a new message. */
  readonly hasNewMessages: boolean;
  /** Files that people attached to new messages. */
  readonly files: readonly MessagePart[];
};

export type Prompt = { readonly text: string; readonly files: readonly MessagePart[] };

export const buildHandover = (history: readonly Row[], stored: StoredSession | null): Handover => {
  const lastKnownIndex = stored === null ? -1 : history.findIndex(({ id }) => id === stored.through);
  const newRows = history.slice(lastKnownIndex + 1).filter(({ role }) => role === "user");
  return {
    isChatInSession: lastKnownIndex >= 0,
    newText: formatRows(newRows),
    hasNewMessages: newRows.some((row) => !isHookRow(row)),
    files: listFiles(newRows),
  };
};

/** Returns the files that people attached to these messages. */
export const listFiles = (rows: readonly Row[]): readonly MessagePart[] =>
  rows.flatMap(({ role, content }) => (role === "user" ? content.filter(({ type }) => type === "file") : []));

/** Returns the user messages at the end of the history. The agent may have missed them because of a crash. */
export const findLastPrompt = (history: readonly Row[]): Prompt => {
  const rows = history.slice(findPromptIndex(history));
  return { text: formatRows(rows), files: listFiles(rows) };
};

const findPromptIndex = (history: readonly Row[]): number => history.findLastIndex(({ role }) => role !== "user") + 1;

const formatRows = (rows: readonly Row[]): string => rows.map(({ content }) => formatContent(content)).join("\n\n");

export const CONTINUE =
  "The connection to you was lost while you were working. Look at the state of the files first, then continue where you left off.";

/** Formats the history as text for a new session. Omits system rows, because agent-home.ts provides instructions. */
export const formatHistory = (all: readonly Row[]): string => {
  const history = all.filter(({ role }) => role !== "system");
  const promptIndex = findPromptIndex(history);
  const newText = formatRows(history.slice(promptIndex));
  if (promptIndex === 0) return newText;
  const messages = history.slice(0, promptIndex).flatMap(({ role, content }) => {
    const lines = content.map((part) => formatPart(part)).filter((line) => line !== "");
    return lines.length === 0 ? [] : [`[${role}]\n${lines.join("\n")}`];
  });
  const past = messages.join("\n\n").slice(-MAX_HISTORY);
  return `This is the conversation so far. Do not repeat its work.\n\n<conversation>\n${past}\n</conversation>\n\n${newText === "" ? CONTINUE : newText}`;
};

const formatPart = (part: MessagePart): string => {
  switch (part.type) {
    case "tool-call":
      return `(called ${part.tool_name ?? "a tool"} with ${formatValue(part.args ?? {})})`;
    case "tool-result":
      return `(result: ${formatValue(part.result ?? null)})`;
    case "reasoning":
      return "";
    default:
      return formatContent([part]);
  }
};

const formatValue = (value: unknown): string => {
  const json = JSON.stringify(value);
  return json.length > MAX_VALUE ? `${json.slice(0, MAX_VALUE)}...` : json;
};

/** Returns a message's text, including the passages of files that it quotes and the names of attached files. */
export const formatContent = (content: readonly MessagePart[]): string =>
  content
    .flatMap(({ type, text, content: passage = "", file_name, name, start_line, end_line }): string[] => {
      if (type === "text" || type === "hook-context") return text ? [text] : [];
      if (type === "file-reference") {
        const location = `${file_name ?? ""}:${start_line ?? ""}-${end_line ?? ""}`;
        return [`${location}\n\`\`\`\n${passage}\n\`\`\`${text ? `\n${text}` : ""}`];
      }
      return type === "file" ? [`(attached file: ${name ?? file_name ?? "unnamed"})`] : [];
    })
    .join("\n");
