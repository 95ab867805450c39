// `slipway groups list [--organization NAME]`: the groups of an organization.
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { toGroupsPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["organization"] });
  requireNoWords(words);
  return withServer("groups list", input, value, async ({ client }) => {
    const groups = await client.get(toGroupsPath(value.organization));
    const rows = groups.map((one) => [
      toPlainLine(one.name),
      toPlainLine(one.display_name) || "-",
      String(one.total_member_count),
      String(one.quota_allowance),
    ]);
    input.print(has.json ? JSON.stringify(groups) : formatTable(["GROUP", "DISPLAY NAME", "MEMBERS", "QUOTA"], rows));
  });
};
