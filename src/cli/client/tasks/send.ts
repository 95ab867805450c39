// `slipway tasks send TASK TEXT`: sends a message to a task. It is queued while the model is busy.
import { readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { readPrompt } from "../chat/find.ts";
import { withServer } from "../remote.ts";
import { getTask, toTaskPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const [first, ...messageWords] = words;
  const word = takeOneWord(input, first === undefined ? [] : [first], "the task and the message");
  return withServer("tasks send", input, value, async ({ client }) => {
    const task = await getTask(client, await promptIfMissing(input, word, "Task"));
    await client.post(`${toTaskPath(task)}/send`, { input: await readPrompt(input, messageWords) });
    input.print(
      has.json
        ? JSON.stringify(task)
        : `${task.name} received the message; \`slipway tasks logs ${task.name}\` shows the answer.`,
    );
  });
};
