// `slipway groups list [--organization NAME]`: the groups of an organization.
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { groupsPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["organization"] });
  noWords(words);
  return withServer("groups list", input, value, async ({ client }) => {
    const groups = await client.get(groupsPath(value.organization));
    const rows = groups.map((one) => [
      plain(one.name),
      plain(one.display_name) || "-",
      String(one.total_member_count),
      String(one.quota_allowance),
    ]);
    input.print(has.json ? JSON.stringify(groups) : asTable(["GROUP", "DISPLAY NAME", "MEMBERS", "QUOTA"], rows));
    return EXIT.ok;
  });
};
