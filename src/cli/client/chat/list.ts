// `slipway chat list`: the caller's chats, most recently active first.
import { CHAT_STATUS_WORDS } from "#schema/chats/chat-status-words.ts";
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const SHOWN_ID = 8;
const TITLE = 60;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("chat list", input, value, async ({ client }) => {
    const chats = await client.get("/api/v2/chats?limit=100");
    const now = input.clock.now();
    const rows = chats.map(({ id, status, title, updated_at }) => [
      id.slice(0, SHOWN_ID),
      CHAT_STATUS_WORDS[status],
      relative(updated_at, now),
      Bun.sliceAnsi(plain(title), 0, TITLE, { ellipsis: "…" }),
    ]);
    if (has.json) input.print(JSON.stringify(chats));
    else if (rows.length === 0) input.print("No chats. Start one with `slipway chat new TEXT`.");
    else input.print(asTable(["CHAT", "STATUS", "CHANGED", "TITLE"], rows));
    return EXIT.ok;
  });
};
