// `slipway tasks logs TASK`: the messages of users and the model in a task.
import { readArguments } from "../../arguments.ts";
import { toPlainLines } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectTask, toTaskPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findTask = selectTask(input, words);
  return withServer("tasks logs", input, value, async ({ client }) => {
    const { logs } = await client.get(`${toTaskPath(await findTask(client))}/logs`);
    if (has.json) input.print(JSON.stringify(logs));
    else if (logs.length === 0) input.print("No messages yet.");
    else for (const { type, content } of logs) input.print(`${type === "input" ? "> " : ""}${toPlainLines(content)}`);
  });
};
