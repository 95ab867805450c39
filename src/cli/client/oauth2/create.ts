// `slipway oauth2 apps create NAME --callback-url URL …`: creates an OAuth application that may request access to users' accounts.
import { usageError } from "#base/usage-error.ts";
import { AUTH_METHODS, type CreateOAuth2App } from "#schema/oauth2/app.ts";
import { readArguments } from "../../arguments.ts";
import { canPrompt, promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { APPS_PATH, describeApp, LISTS, toAppFields, VALUES } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { values: ["auth-method", ...VALUES], lists: LISTS });
  const word = takeOneWord(input, words, "the application's name");
  if (value["callback-url"] === undefined && !canPrompt(input)) {
    throw usageError("--callback-url", "expected the URL that users are sent back to");
  }
  const method = parseMethod(value["auth-method"]);
  return withServer("oauth2 apps create", input, value, async ({ client }) => {
    const app = await client.post(APPS_PATH, {
      name: await promptIfMissing(input, word, "Name of the application"),
      callback_url: await promptIfMissing(input, value["callback-url"], "Callback URL"),
      ...toAppFields({ value, list }),
      ...(method === undefined ? {} : { token_endpoint_auth_method: method }),
    } satisfies CreateOAuth2App);
    const next =
      app.token_endpoint_auth_method === "none"
        ? ""
        : `\n\`slipway oauth2 apps secrets ${app.id} --create\` creates its client secret.`;
    input.print(has.json ? JSON.stringify(app) : `${describeApp(app)}${next}`);
  });
};

const parseMethod = (text: string | undefined) => {
  const authMethod = AUTH_METHODS.find((one) => one === text);
  if (text !== undefined && authMethod === undefined) {
    throw usageError("--auth-method", `expected one of ${AUTH_METHODS.join(", ")}`);
  }
  return authMethod;
};
