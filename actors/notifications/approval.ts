// The push message of a chat that waits for approval, in addition to the notification's text: the calls as text, and the data to allow or
// deny them without opening the page (rule NO-13). Pure.
import { escapeAllHidden } from "#base/visible-text.ts";
import type { ChatRow } from "#db/chats/chats.ts";
import { getCommand, getPaths, getShellFolders } from "#src/tools/permission-mode.ts";

/** The answer that the browser sends. It names exactly these calls, so that an outdated answer is rejected. */
export type PushedApproval = {
  readonly chat: string;
  readonly calls: readonly string[];
  /** Whether the text shows everything that would happen. Otherwise the calls can only be allowed on the page. */
  readonly can_allow: boolean;
};

/** Notifications display a few short lines. Longer text or more lines could hide a part of the calls. */
const MAX_TEXT_LENGTH = 120;
const MAX_LINES = 4;
/** Tools whose text names only their files, not what they write. */
const WRITING_TOOLS = new Set(["edit_files", "write_file"]);
const MAX_ID_BYTES = 1_000;
/** Longer blank runs can push the rest of a command out of the part that a notification displays. U+2800 is the blank Braille pattern. */
const BLANKS = /[\s\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]{9}/u;

type Call = ChatRow["pending_calls"][number];

/** Returns the text and the answer, or undefined when the chat waits for no approval. */
export const toApproval = ({
  id,
  status,
  pending_calls,
}: Pick<ChatRow, "id" | "status" | "pending_calls">):
  | { readonly text: string; readonly approval?: PushedApproval }
  | undefined => {
  const requested =
    status === "requires_action" ? pending_calls.filter(({ permission }) => permission === "asked") : [];
  if (requested.length === 0) return undefined;
  const rawText = requested.map(toLine).join("\n");
  const text = escapeAllHidden(rawText);
  const calls = requested.map(({ tool_call_id }) => tool_call_id);
  if (Buffer.byteLength(calls.join()) > MAX_ID_BYTES) return { text };
  const isShort = text.length <= MAX_TEXT_LENGTH && text.split("\n").length <= MAX_LINES;
  // A tab is one blank, and takes the room of four.
  const isPadded = BLANKS.test(rawText) || BLANKS.test(text);
  const isComplete = !requested.some(({ tool_name }) => WRITING_TOOLS.has(tool_name));
  return { text, approval: { chat: id, calls, can_allow: isShort && isComplete && !isPadded } };
};

/** Returns the call in words, with its hidden characters. */
const toLine = ({ tool_name, args }: Call): string => {
  if (tool_name === "execute") {
    const { workdir } = (args ?? {}) as { workdir?: unknown };
    const kept = getShellFolders(args);
    const keptText = kept.length > 0 ? ` (maybe in ${kept.join(" or ")})` : "";
    return `Run: ${getCommand(args)}${typeof workdir === "string" ? ` (in ${workdir})` : keptText}`;
  }
  const paths = getPaths(args).filter((path) => typeof path === "string");
  if (tool_name === "edit_files") return `Edit ${paths.join(", ")}`;
  if (tool_name === "write_file") return `Write ${paths.join(", ")}`;
  return `${tool_name}: ${JSON.stringify(args ?? {})}`;
};
