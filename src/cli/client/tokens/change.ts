// `slipway tokens change TOKEN [--scope SCOPE]… [--address NETWORK]…`: changes a token's scopes and allowed addresses.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { RESTRICTIONS, toRestrictions } from "./create.ts";
import { selectToken, toTokensPath } from "./find.ts";
import { describeToken } from "./show.ts";

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { values: ["user"], lists: RESTRICTIONS });
  const body = toRestrictions(list);
  if (Object.keys(body).length === 0) throw usageError("tokens change", "expected --scope or --address");
  const findToken = selectToken(input, words, value.user);
  return withServer("tokens change", input, value, async ({ client }) => {
    const { token_name } = await findToken(client);
    const path = `${toTokensPath(value.user)}/${encodeURIComponent(token_name)}` as const;
    const token = await client.patch(path, body);
    input.print(has.json ? JSON.stringify(token) : describeToken(token, input.clock.now()));
  });
};
