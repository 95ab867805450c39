// `slipway groups edit GROUP [--name NAME] [--display-name TEXT] [--quota N]`: changes a group; omitted options are unchanged.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { describeGroup, GROUP_OPTIONS, selectGroup, toGroupFields } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["organization", "name", ...GROUP_OPTIONS] });
  const body = { ...toGroupFields(value), ...(value.name === undefined ? {} : { name: value.name }) };
  if (Object.keys(body).length === 0) {
    throw usageError("groups edit", "expected --name, --display-name, --avatar-url or --quota");
  }
  const findGroup = selectGroup(input, words, value.organization);
  return withServer("groups edit", input, value, async ({ client }) => {
    const { id } = await findGroup(client);
    const group = await client.patch(`/api/v2/groups/${id}`, body);
    input.print(has.json ? JSON.stringify(group) : describeGroup(group));
  });
};
