// `slipway chat clear CHAT`: clears the model's context; users still see the messages.
import { readArguments } from "../../arguments.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import { EXIT, type RunVerb, type VerbInput } from "../../verb.ts";
import { type Remote, withServer } from "../remote.ts";
import { selectChat } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, {});
  const name = takeOneWord(input, words, "the chat");
  return withServer("chat clear", input, value, async (remote) =>
    clear(input, remote, (await selectChat(input, remote.client, name)).id, has.json),
  );
};

export const clear = async (input: VerbInput, { client }: Remote, id: string, json: boolean): Promise<number> => {
  const chat = await client.post(`/api/v2/chats/${id}/clear`);
  input.print(json ? JSON.stringify(chat) : "Context cleared. The model starts over with your next message.");
  return EXIT.ok;
};
