// Finds tokens by name or ID, for the commands that work on one.
import type { ApiKey } from "#schema/users/api-key.ts";
import type { Client } from "#src/client.ts";
import { promptIfMissing, takeOneWord } from "../../missing-arguments.ts";
import { toUnknownNameError } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";
import { toUserPath } from "../users/find.ts";

/** The API path of a user's tokens. */
export const toTokensPath = (user: string | undefined) => `${toUserPath(user ?? "me")}/keys/tokens` as const;

/** Returns the tokens of a user, including expired ones, oldest first. */
export const listTokens = (client: Client, user: string | undefined): Promise<ApiKey[]> =>
  client.get(`${toTokensPath(user)}?include_expired=true`);

/** Returns the named token, or prompts for one on a terminal. Throws UsageError before any request. */
export const selectToken = (
  input: VerbInput,
  words: readonly string[],
  user: string | undefined,
): ((client: Client) => Promise<ApiKey>) => {
  const word = takeOneWord(input, words, "the token, by its name or id");
  return async (client) => {
    const tokens = await listTokens(client, user);
    const name = await promptIfMissing(input, word, "Token", async () => tokens.map((one) => one.token_name));
    const found = tokens.find((one) => one.token_name === name) ?? tokens.find(({ id }) => id === name);
    if (!found)
      throw await toUnknownNameError("token", name, () => tokens.map((one) => one.token_name), "slipway tokens list");
    return found;
  };
};
