// `slipway chat send CHAT TEXT`: continues a chat and prints the answer as it arrives. Ctrl-C interrupts the turn.
import type { CreateMessage } from "#schema/chats/chat.ts";
import { readArguments } from "../../arguments.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { parsePermissionPolicy } from "./approve-calls.ts";
import { clear } from "./clear.ts";
import { compactChat } from "./compact.ts";
import { getModel, readPrompt, selectChat } from "./find.ts";
import { follow } from "./follow.ts";
import { interruptChat } from "./new.ts";

/** Matches `/compact`, optionally with instructions for the summary. */
const COMPACT_COMMAND = /^\s*\/compact(?:\s([\s\S]*))?$/;

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {
    values: ["model", "permissions"],
    switches: ["interrupt", "no-wait"],
  });
  const [first, ...messageWords] = words;
  const name = takeOneWord(input, first === undefined ? [] : [first], "the chat and the message");
  const permissions = parsePermissionPolicy(value.permissions);
  return withServer("chat send", input, value, async (remote) => {
    const { client } = remote;
    const { id } = await selectChat(input, client, name);
    const text = await readPrompt(input, messageWords);
    if (text.trim() === "/clear") return clear(input, remote, id, has.json);
    const compactMatch = COMPACT_COMMAND.exec(text);
    if (compactMatch) {
      const request = { id, instructions: (compactMatch[1] ?? "").trim(), waits: !has["no-wait"], json: has.json };
      return compactChat(input, remote, request);
    }
    const model = value.model === undefined ? undefined : await getModel(client, value.model);
    const path = `/api/v2/chats/${id}/messages` as const;
    const { messages } = await client.get(`${path}?limit=1`);
    const sent = await client.post(path, {
      content: [{ type: "text", text }],
      ...(has.interrupt ? { busy_behavior: "interrupt" } : {}),
      ...(model === undefined ? {} : { model_config_id: model }),
    } satisfies CreateMessage);
    if (has["no-wait"]) {
      input.print(has.json ? JSON.stringify(sent) : sent.queued ? "Queued." : "Sent.");
      return EXIT.ok;
    }
    remote.onInterrupt(() => interruptChat(client, id));
    const after = sent.message?.id ?? Math.max(0, ...messages.map((one) => one.id));
    const { json } = has;
    return follow(input, remote, { chat_id: id, after, untilIdle: true, json, showsUsers: false, permissions });
  });
};
