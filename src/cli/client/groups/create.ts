// `slipway groups create NAME [--display-name TEXT] [--quota N]`: creates an empty group.
import { readArguments } from "../../arguments.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { GROUP_OPTIONS, toGroupFields, toGroupsPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["organization", ...GROUP_OPTIONS] });
  const word = takeOneWord(input, words, "the group's name");
  const fields = toGroupFields(value);
  return withServer("groups create", input, value, async ({ client }) => {
    const name = await promptIfMissing(input, word, "Name of the group");
    const group = await client.post(toGroupsPath(value.organization), { name, ...fields });
    const next = `\`slipway groups members ${group.name} --add USER\` adds members`;
    input.print(has.json ? JSON.stringify(group) : `Created ${group.name}; ${next}.`);
  });
};
