// `slipway groups delete GROUP [--yes]`: deletes a group after confirmation; its members lose access to what was shared with it.
import { readArguments } from "../../arguments.ts";
import { confirmByName, requireConfirmable } from "../../missing-arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectGroup } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["organization"], switches: ["yes"] });
  const findGroup = selectGroup(input, words, value.organization);
  requireConfirmable(input, has.yes);
  return withServer("groups delete", input, value, async ({ client }) => {
    const group = await findGroup(client);
    if (!has.yes)
      await confirmByName(
        input,
        group.name,
        `This deletes the group ${group.name} and removes its access to everything shared with it.`,
      );
    await client.delete(`/api/v2/groups/${group.id}`);
    input.print(has.json ? JSON.stringify(group) : `${group.name} is deleted.`);
  });
};
