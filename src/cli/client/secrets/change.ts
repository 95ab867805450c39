// `slipway secrets change NAME [--value-file FILE] [--env VARIABLE] [--file PATH]`: changes a secret's value, or where workspaces find it.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { readSecret, SECRET_OPTIONS, selectSecret, toSecretFields, toSecretPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: SECRET_OPTIONS });
  const findSecret = selectSecret(input, words);
  const fields = toSecretFields(value);
  const file = value["value-file"];
  return withServer("secrets change", input, value, async ({ client }) => {
    const { name } = await findSecret(client);
    // Without options, the value is changed.
    const changesValue = file !== undefined || Object.keys(fields).length === 0;
    const body = { ...fields, ...(changesValue ? { value: await readSecret(input, file) } : {}) };
    const changed = await client.patch(toSecretPath(name), body);
    input.print(
      has.json
        ? JSON.stringify(changed)
        : `${changed.name} changed. New processes in your workspaces get the new value.`,
    );
  });
};
