// `slipway trash list`: deleted workspaces that can be restored.
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, size } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  noWords(words);
  return withServer("trash list", input, value, async ({ client }) => {
    const found = await client.get("/api/v2/workspaces/trash");
    const rows = found.workspaces.map((one) => [
      `${plain(one.owner_name)}/${plain(one.name)}`,
      plain(one.template_name),
      one.deleted_at,
      one.kept_until,
      size(one.bytes),
    ]);
    const shown =
      rows.length === 0
        ? "The trash is empty."
        : asTable(["WORKSPACE", "TEMPLATE", "DELETED", "KEPT UNTIL", "SIZE"], rows);
    input.print(has.json ? JSON.stringify(found) : shown);
    return EXIT.ok;
  });
};
