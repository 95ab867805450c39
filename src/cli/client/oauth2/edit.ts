// `slipway oauth2 apps edit APP [--name NAME] [--callback-url URL] …`: changes an application; omitted options are unchanged.
import { usageError } from "#base/usage-error.ts";
import type { UpdateOAuth2App } from "#schema/oauth2/app.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { describeApp, LISTS, selectApp, toAppFields, toAppPath, VALUES } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { values: ["name", ...VALUES], lists: LISTS });
  const { name, "callback-url": callback_url } = value;
  const body: UpdateOAuth2App = {
    ...toAppFields({ value, list }),
    ...(name === undefined ? {} : { name }),
    ...(callback_url === undefined ? {} : { callback_url }),
  };
  if (Object.keys(body).length === 0) {
    throw usageError("oauth2 apps edit", "expected --name, --callback-url, --redirect-uri, --icon or --scope");
  }
  const findApp = selectApp(input, words);
  return withServer("oauth2 apps edit", input, value, async ({ client }) => {
    const app = await client.put(toAppPath(await findApp(client)), body);
    input.print(has.json ? JSON.stringify(app) : describeApp(app));
  });
};
