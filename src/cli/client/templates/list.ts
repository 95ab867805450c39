// `slipway templates list`: the templates from which workspaces can be created.
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("templates list", input, value, async ({ client }) => {
    const templates = await client.get("/api/v2/templates");
    const now = input.clock.now();
    const rows = templates.map((one) => [
      toPlainLine(one.name),
      `${one.provisioner}${one.deprecated ? ", deprecated" : ""}`,
      String(one.active_user_count),
      formatRelative(one.updated_at, now),
      toPlainLine(one.description),
    ]);
    if (has.json) input.print(JSON.stringify(templates));
    else if (rows.length === 0) input.print("No templates. Create one with `slipway templates push FOLDER`.");
    else input.print(formatTable(["TEMPLATE", "PROVISIONER", "USERS", "UPDATED", "DESCRIPTION"], rows));
  });
};
