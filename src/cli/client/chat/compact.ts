// `slipway chat compact CHAT [TEXT]`: has a model summarize the conversation, and continues from the summary. Ctrl-C interrupts it.
import type { CompactChat } from "#schema/chats/chat.ts";
import { readArguments } from "../../arguments.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { type Remote, withServer } from "../remote.ts";
import { selectChat } from "./find.ts";
import { follow } from "./follow.ts";
import { interruptChat } from "./new.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["no-wait"] });
  const [first, ...instructionWords] = words;
  const name = takeOneWord(input, first === undefined ? [] : [first], "the chat");
  return withServer("chat compact", input, value, async (remote) => {
    const { id } = await selectChat(input, remote.client, name);
    return compactChat(input, remote, {
      id,
      instructions: instructionWords.join(" "),
      waits: !has["no-wait"],
      json: has.json,
    });
  });
};

type CompactOptions = {
  readonly id: string;
  readonly instructions: string;
  readonly waits: boolean;
  readonly json: boolean;
};

/** Prints the summary as it arrives, except with --no-wait. Throws VerbFailure if there is no summary. */
export const compactChat = async (
  input: VerbInput,
  remote: Remote,
  { id, instructions, waits, json }: CompactOptions,
): Promise<number> => {
  const { client } = remote;
  const path = `/api/v2/chats/${id}` as const;
  const { messages } = await client.get(`${path}/messages?limit=1`);
  const body: CompactChat = instructions === "" ? {} : { instructions };
  const chat = await client.post(`${path}/compact`, body);
  if (!waits) {
    input.print(json ? JSON.stringify(chat) : "Summarizing the chat.");
    return EXIT.ok;
  }
  remote.onInterrupt(() => interruptChat(client, id));
  const after = Math.max(0, ...messages.map((one) => one.id));
  return follow(input, remote, { chat_id: id, after, untilIdle: true, json, showsUsers: false, permissions: "ask" });
};
