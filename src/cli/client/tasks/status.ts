// `slipway tasks status TASK`: the current state of a task.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { describeTask, selectTask } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findTask = selectTask(input, words);
  return withServer("tasks status", input, value, async ({ client }) => {
    const task = await findTask(client);
    input.print(has.json ? JSON.stringify(task) : describeTask(task));
  });
};
