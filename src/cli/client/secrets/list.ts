// `slipway secrets list`: the user's secrets, without their values.
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { SECRETS_PATH } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("secrets list", input, value, async ({ client }) => {
    const secrets = await client.get(SECRETS_PATH);
    const now = input.clock.now();
    const rows = secrets.map((one) => [
      one.name,
      one.env_name || "-",
      toPlainLine(one.file_path) || "-",
      formatRelative(one.updated_at, now),
      toPlainLine(one.description),
    ]);
    if (has.json) input.print(JSON.stringify(secrets));
    else if (rows.length === 0)
      input.print("No secrets. Create one with `slipway secrets create NAME --env VARIABLE`.");
    else input.print(formatTable(["NAME", "VARIABLE", "FILE", "CHANGED", "DESCRIPTION"], rows));
  });
};
