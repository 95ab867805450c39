// `slipway secrets remove NAME`: deletes a secret.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectSecret, toSecretPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const findSecret = selectSecret(input, words);
  return withServer("secrets remove", input, value, async ({ client }) => {
    const secret = await findSecret(client);
    await client.delete(toSecretPath(secret.name));
    input.print(has.json ? JSON.stringify(secret) : `${secret.name} is removed.`);
  });
};
