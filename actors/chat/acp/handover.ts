// Builds the prompt at the beginning of a coding agent's turn: the messages since its last prompt, or the whole history when it has no
// session that knows it. Pure.
import type { MessageRow } from "#db/chats/messages.ts";
import type { MessagePart } from "#schema/chats/chat-part.ts";
import { isHookRow } from "../hooks/effects.ts";

/** The session that a chat continues, and the last message that it knows. */
export type StoredSession = { readonly session_id: string; readonly through: number };

type Row = Pick<MessageRow, "id" | "role" | "content">;

/** Maximum characters of history for a new session; the newest are kept. */
const MAX_HISTORY = 200_000;
const MAX_RESULT = 2_000;

export type Handover = {
  /** Whether the stored session still matches the history, so that only newer messages need to be sent. */
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
    newText: newRows.map(({ content }) => formatContent(content)).join("\n\n"),
    hasNewMessages: newRows.some((row) => !isHookRow(row)),
    files: listFiles(newRows),
  };
};

/** Returns the files that people attached to these messages. */
export const listFiles = (rows: readonly Row[]): readonly MessagePart[] =>
  rows.flatMap(({ role, content }) => (role === "user" ? content.filter(({ type }) => type === "file") : []));

/** Returns the messages that people sent last, which the agent may have missed because of a crash. */
export const findLastPrompt = (history: readonly Row[]): Prompt => {
  const lastOtherIndex = history.findLastIndex(({ role }) => role !== "user");
  const rows = history.slice(lastOtherIndex + 1);
  return { text: rows.map(({ content }) => formatContent(content)).join("\n\n"), files: listFiles(rows) };
};

export const CONTINUE =
  "The connection to you was lost while you were working. Look at the state of the files first, then continue where you left off.";

/** Formats the history as text for a session that does not know it. Instructions are provided separately: see ./agent-home.ts. */
export const formatHistory = (all: readonly Row[]): string => {
  const history = all.filter(({ role }) => role !== "system");
  const lastOtherIndex = history.findLastIndex(({ role }) => role !== "user");
  const earlier = history.slice(0, lastOtherIndex + 1);
  const newText = history
    .slice(lastOtherIndex + 1)
    .map(({ content }) => formatContent(content))
    .join("\n\n");
  if (earlier.length === 0) return newText;
  const lines = earlier.flatMap(({ role, content }) => {
    const text = content.map((part) => formatPart(part)).filter((line) => line !== "");
    return text.length === 0 ? [] : [`[${role}]\n${text.join("\n")}`];
  });
  const past = lines.join("\n\n").slice(-MAX_HISTORY);
  return `This is the conversation so far. Do not repeat its work.\n\n<conversation>\n${past}\n</conversation>\n\n${newText === "" ? CONTINUE : newText}`;
};

const formatPart = (part: MessagePart): string => {
  switch (part.type) {
    case "tool-call":
      return `(called ${part.tool_name ?? "a tool"} with ${truncateResult(JSON.stringify(part.args ?? {}))})`;
    case "tool-result":
      return `(result: ${truncateResult(JSON.stringify(part.result ?? null))})`;
    case "reasoning":
      return "";
    default:
      return formatContent([part]);
  }
};

const truncateResult = (text: string): string => (text.length > MAX_RESULT ? `${text.slice(0, MAX_RESULT)}...` : text);

/** Returns what a person wrote, including commented passages of diffs and the names of files. */
export const formatContent = (content: readonly MessagePart[]): string =>
  content
    .flatMap(({ type, text, content: passage = "", file_name, name, start_line, end_line }): string[] => {
      if (type === "text" || type === "hook-context") return text ? [text] : [];
      if (type === "file-reference") {
        return [
          `${file_name ?? ""}:${start_line ?? ""}-${end_line ?? ""}\n\`\`\`\n${passage}\n\`\`\`${text ? `\n${text}` : ""}`,
        ];
      }
      return type === "file" ? [`(attached file: ${name ?? file_name ?? "unnamed"})`] : [];
    })
    .join("\n");
