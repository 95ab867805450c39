// `slipway oauth2 apps delete APP [--yes]`: deletes an application and revokes its grants, after confirmation.
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectApp, toAppPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const findApp = selectApp(input, words);
  requireConfirmable(input, has.yes);
  return withServer("oauth2 apps delete", input, value, async ({ client }) => {
    const app = await findApp(client);
    const name = toPlainLine(app.name);
    if (!has.yes)
      await confirmByName(input, app.name, `This deletes the application ${name} and revokes all of its grants.`);
    await client.delete(toAppPath(app));
    input.print(has.json ? JSON.stringify(app) : `${name} is deleted.`);
  });
};
