// `slipway tasks create TEXT [--template NAME | --repo URL] [--agent NAME | --model NAME] …`: creates a workspace and starts a chat in it
// with the text.
import { usageError } from "#base/usage-error.ts";
import type { CreateTask } from "#schema/tasks/task.ts";
import { parsePairs, readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { getModel, readPrompt } from "../chat/find.ts";
import { withServer } from "../remote.ts";
import { REPOSITORY_VALUES, toRepository } from "../repository-options.ts";
import { chooseTemplate } from "../templates/find.ts";

const SHAPE = {
  values: [...["template", "preset", "name", "agent", "model"], ...REPOSITORY_VALUES],
  lists: ["parameter"],
  switches: ["full-history"],
} as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, SHAPE);
  const rich_parameter_values = parsePairs("--parameter", list.parameter);
  const repository = toRepository(value, has);
  if (value.agent !== undefined && value.model !== undefined) throw usageError("--agent", "not with --model");
  return withServer("tasks create", input, value, async ({ client }) => {
    const text = await readPrompt(input, words);
    const { template, preset } = value;
    const needsTemplate = repository === undefined || template !== undefined || preset !== undefined;
    const source = needsTemplate
      ? await chooseTemplate(input, client, { template, preset, parameters: rich_parameter_values })
      : {};
    const task = await client.post("/api/v2/tasks/me", {
      input: text,
      rich_parameter_values,
      ...source,
      ...(repository === undefined ? {} : { repository }),
      ...(value.name === undefined ? {} : { name: value.name }),
      ...(value.agent === undefined ? {} : { coding_agent: value.agent }),
      ...(value.model === undefined ? {} : { model_config_id: await getModel(client, value.model) }),
    } satisfies CreateTask);
    const next = `\`slipway tasks status ${task.name}\` shows its progress`;
    input.print(has.json ? JSON.stringify(task) : `Created the task ${task.name}; ${next}.`);
  });
};
