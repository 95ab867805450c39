// `slipway chat watch CHAT`: prints the history and new events, until Ctrl-C or, with --until-idle, the end of the turn.
import { readArguments } from "../../arguments.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { parsePermissionPolicy } from "./approve-calls.ts";
import { selectChat } from "./find.ts";
import { follow } from "./follow.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["permissions"], switches: ["until-idle"] });
  const word = takeOneWord(input, words, "the chat");
  const permissions = parsePermissionPolicy(value.permissions);
  return withServer("chat watch", input, value, async (remote) => {
    const { id } = await selectChat(input, remote.client, word);
    const { "until-idle": untilIdle, json } = has;
    return follow(input, remote, { chat_id: id, after: 0, untilIdle, json, showsUsers: true, permissions });
  });
};
