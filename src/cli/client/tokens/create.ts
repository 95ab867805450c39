// `slipway tokens create [NAME]`: creates a token and prints only the token, once, for use in scripts.
import { type Arguments, readArguments, requireNoWords } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { toTokensPath } from "./find.ts";

/** The options that restrict a token. */
export const RESTRICTIONS = ["scope", "address"] as const;

export const run: RunVerb = async (input) => {
  const { words, value, list, has } = readArguments(input.argv, { values: ["user", "lifetime"], lists: RESTRICTIONS });
  const [token_name, ...more] = words;
  requireNoWords(more);
  const { lifetime } = value;
  return withServer("tokens create", input, value, async ({ client }) => {
    const created = await client.post(toTokensPath(value.user), {
      ...(token_name === undefined ? {} : { token_name }),
      ...(lifetime === undefined ? {} : { lifetime }),
      ...toRestrictions(list),
    });
    input.print(has.json ? JSON.stringify(created) : created.key);
  });
};

/** Converts the given options to request fields. */
export const toRestrictions = ({
  scope,
  address,
}: Arguments<never, (typeof RESTRICTIONS)[number]>["list"]): {
  scopes?: readonly string[];
  allowed_addresses?: readonly string[];
} => ({
  ...(scope.length > 0 ? { scopes: scope } : {}),
  ...(address.length > 0 ? { allowed_addresses: address } : {}),
});
