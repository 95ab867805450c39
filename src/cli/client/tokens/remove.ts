// `slipway tokens remove TOKEN [--user USER]`: revokes a token and ends the connections opened with it.
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { toUserPath } from "../users/find.ts";
import { selectToken } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"] });
  const findToken = selectToken(input, words, value.user);
  return withServer("tokens remove", input, value, async ({ client }) => {
    const token = await findToken(client);
    await client.delete(`${toUserPath(token.user_id)}/keys/${token.id}`);
    input.print(has.json ? JSON.stringify(token) : `The token ${token.token_name} is revoked.`);
  });
};
