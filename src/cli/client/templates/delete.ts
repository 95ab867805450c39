// `slipway templates delete TEMPLATE [--yes]`: deletes a template without workspaces after confirmation.
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectTemplate } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const findTemplate = selectTemplate(input, words);
  requireConfirmable(input, has.yes);
  return withServer("templates delete", input, value, async ({ client }) => {
    const template = await findTemplate(client);
    if (!has.yes) await confirmByName(input, template.name, `This deletes the template ${template.name}.`);
    await client.delete(`/api/v2/templates/${template.id}`);
    input.print(has.json ? JSON.stringify(template) : `${template.name} is deleted.`);
  });
};
