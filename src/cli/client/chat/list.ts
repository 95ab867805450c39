// `slipway chat list`: the caller's chats, most recently active first.
import { CHAT_STATUS_LABELS } from "#schema/chats/chat-status-words.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const ID_LENGTH = 8;
const MAX_TITLE_LENGTH = 60;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("chat list", input, value, async ({ client }) => {
    const chats = await client.get("/api/v2/chats?limit=100");
    const now = input.clock.now();
    const rows = chats.map(({ id, status, title, updated_at }) => [
      id.slice(0, ID_LENGTH),
      CHAT_STATUS_LABELS[status],
      formatRelative(updated_at, now),
      Bun.sliceAnsi(toPlainLine(title), 0, MAX_TITLE_LENGTH, { ellipsis: "…" }),
    ]);
    if (has.json) input.print(JSON.stringify(chats));
    else if (rows.length === 0) input.print("No chats. Start one with `slipway chat new TEXT`.");
    else input.print(formatTable(["CHAT", "STATUS", "CHANGED", "TITLE"], rows));
  });
};
