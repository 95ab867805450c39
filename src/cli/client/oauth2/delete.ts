// `slipway oauth2 apps delete APP [--yes]`: deletes an application and revokes its grants, after confirmation.
import { readArguments } from "../../arguments.ts";
import { confirmable, confirmByName } from "../../asked.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { appAsked, appPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { switches: ["yes"] });
  const named = appAsked(input, words);
  confirmable(input, has.yes);
  return withServer("oauth2 apps delete", input, value, async ({ client }) => {
    const app = await named(client);
    const name = plain(app.name);
    if (!has.yes)
      await confirmByName(input, app.name, `This deletes the application ${name} and revokes all of its grants.`);
    await client.delete(appPath(app));
    input.print(has.json ? JSON.stringify(app) : `${name} is deleted.`);
    return EXIT.ok;
  });
};
