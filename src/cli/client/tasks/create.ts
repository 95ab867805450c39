// `slipway tasks create TEXT [--template NAME] …`: makes a workspace in which a chat begins with the text.
import type { CreateTask } from "#schema/tasks/task.ts";
import { pairs, readArguments } from "../../arguments.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { modelNamed, readPrompt } from "../chat/find.ts";
import { withServer } from "../remote.ts";
import { presetNamed, templateAsked } from "../templates/find.ts";

const SHAPE = { values: ["template", "preset", "name", "model"], lists: ["parameter"] } as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, SHAPE);
  const rich_parameter_values = pairs("--parameter", list.parameter);
  return withServer("tasks create", input, value, async ({ client }) => {
    const text = await readPrompt(input, words);
    const template = await templateAsked(input, client, value.template);
    const preset =
      value.preset === undefined ? undefined : await presetNamed(client, template, value.preset, rich_parameter_values);
    const task = await client.post("/api/v2/tasks/me", {
      input: text,
      rich_parameter_values,
      ...(preset
        ? { template_version_preset_id: preset, template_version_id: template.active_version_id }
        : { template_id: template.id }),
      ...(value.name === undefined ? {} : { name: value.name }),
      ...(value.model === undefined ? {} : { model_config_id: await modelNamed(client, value.model) }),
    } satisfies CreateTask);
    const next = `\`slipway tasks status ${task.name}\` shows its progress`;
    input.print(has.json ? JSON.stringify(task) : `Created the task ${task.name}; ${next}.`);
    return EXIT.ok;
  });
};
