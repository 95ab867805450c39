// `slipway secrets create NAME [--env VARIABLE] [--file PATH]`: stores a secret for the user's workspaces.
import type { CreateUserSecret } from "#schema/users/user-secret.ts";
import { readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { readSecret, SECRET_OPTIONS, SECRETS_PATH, toSecretFields } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: SECRET_OPTIONS });
  const word = takeOneWord(input, words, "the secret's name");
  return withServer("secrets create", input, value, async ({ client }) => {
    const name = await promptIfMissing(input, word, "Name of the secret");
    const secret = await readSecret(input, value["value-file"]);
    const created = await client.post(SECRETS_PATH, {
      name,
      value: secret,
      ...toSecretFields(value),
    } satisfies CreateUserSecret);
    input.print(
      has.json ? JSON.stringify(created) : `${created.name} created. New processes in your workspaces get it.`,
    );
  });
};
