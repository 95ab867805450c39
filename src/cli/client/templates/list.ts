// `slipway templates list`: the templates from which workspaces can be created.
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("templates list", input, value, async ({ client }) => {
    const templates = await client.get("/api/v2/templates");
    const now = input.clock.now();
    const rows = templates.map((one) => [
      plain(one.name),
      `${one.provisioner}${one.deprecated ? ", deprecated" : ""}`,
      String(one.active_user_count),
      relative(one.updated_at, now),
      plain(one.description),
    ]);
    if (has.json) input.print(JSON.stringify(templates));
    else if (rows.length === 0) input.print("No templates. Create one with `slipway templates push FOLDER`.");
    else input.print(asTable(["TEMPLATE", "PROVISIONER", "USERS", "UPDATED", "DESCRIPTION"], rows));
    return EXIT.ok;
  });
};
