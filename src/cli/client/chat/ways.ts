// `slipway chat ways CHAT`: lists the ways of the chat's newest trial, prints the changes of one, or stops all of them.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import { takeOneWord } from "../../missing-arguments.ts";
import { toPlainLines } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectChat } from "./find.ts";
import { describeTrial, getNewestTrial } from "./trial.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["diff"], switches: ["stop"] });
  const name = takeOneWord(input, words, "the chat");
  const way = value.diff === undefined ? undefined : Number(value.diff);
  if (way !== undefined && !(Number.isInteger(way) && way > 0))
    throw usageError("--diff", "expected the number of a way");
  return withServer("chat ways", input, value, async ({ client }) => {
    const trial = await getNewestTrial(client, await selectChat(input, client, name));
    const path = `/api/v2/chats/${trial.chat_id}/trials/${trial.id}` as const;
    if (way !== undefined) {
      const diff = await client.get(`${path}/ways/${way}/diff`);
      const texts = diff.folders.map(({ root, unified_diff }) => `# ${root}\n${unified_diff}`);
      input.print(has.json ? JSON.stringify(diff) : toPlainLines(texts.join("\n")).trimEnd() || "No changes.");
      return;
    }
    const shown = has.stop ? await client.post(`${path}/stop`) : trial;
    input.print(has.json ? JSON.stringify(shown) : describeTrial(shown));
  });
};
