// `slipway secrets list`: the user's secrets, without their values.
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { SECRETS_PATH } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("secrets list", input, value, async ({ client }) => {
    const secrets = await client.get(SECRETS_PATH);
    const now = input.clock.now();
    const rows = secrets.map((one) => [
      one.name,
      one.env_name || "-",
      plain(one.file_path) || "-",
      relative(one.updated_at, now),
      plain(one.description),
    ]);
    if (has.json) input.print(JSON.stringify(secrets));
    else if (rows.length === 0)
      input.print("No secrets. Create one with `slipway secrets create NAME --env VARIABLE`.");
    else input.print(asTable(["NAME", "VARIABLE", "FILE", "CHANGED", "DESCRIPTION"], rows));
    return EXIT.ok;
  });
};
