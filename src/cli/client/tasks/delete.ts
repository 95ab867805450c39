// `slipway tasks delete TASK [--yes]`: deletes a task with its workspace after confirmation; its chat is archived.
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectTask, toTaskPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const findTask = selectTask(input, words);
  requireConfirmable(input, has.yes);
  return withServer("tasks delete", input, value, async ({ client }) => {
    const task = await findTask(client);
    if (!has.yes) await confirmByName(input, task.name, `This deletes ${task.name} and everything in its workspace.`);
    await client.delete(toTaskPath(task));
    input.print(has.json ? JSON.stringify(task) : `${task.name} and its workspace are being deleted.`);
  });
};
