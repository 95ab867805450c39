// `slipway trash list`: deleted workspaces that can be restored.
import { formatSize } from "#base/format-size.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  requireNoWords(words);
  return withServer("trash list", input, value, async ({ client }) => {
    const found = await client.get("/api/v2/workspaces/trash");
    const rows = found.workspaces.map((one) => [
      `${toPlainLine(one.owner_name)}/${toPlainLine(one.name)}`,
      toPlainLine(one.template_name),
      one.deleted_at,
      one.kept_until,
      formatSize(one.bytes),
    ]);
    const shown =
      rows.length === 0
        ? "The trash is empty."
        : formatTable(["WORKSPACE", "TEMPLATE", "DELETED", "KEPT UNTIL", "SIZE"], rows);
    input.print(has.json ? JSON.stringify(found) : shown);
  });
};
