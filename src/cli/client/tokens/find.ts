// Tokens by name or id, for the verbs that work on one.
import type { ApiKey } from "#schema/users/api-key.ts";
import type { Client } from "#src/client.ts";
import { oneWord, orAsked } from "../../asked.ts";
import { unknownName } from "../../unknown-name.ts";
import type { VerbInput } from "../../verb.ts";
import { userPath } from "../users/find.ts";

/** Where the API has the tokens of a user. */
export const tokensPath = (user: string | undefined) => `${userPath(user ?? "me")}/keys/tokens` as const;

/** The tokens of a user, including expired ones, oldest first. */
export const listTokens = (client: Client, user: string | undefined): Promise<ApiKey[]> =>
  client.get(`${tokensPath(user)}?include_expired=true`);

/** The token that the words name, or that is asked for at a terminal. Throws UsageError before anything is sent. */
export const tokenAsked = (
  input: VerbInput,
  words: readonly string[],
  user: string | undefined,
): ((client: Client) => Promise<ApiKey>) => {
  const word = oneWord(input, words, "the token, by its name or id");
  return async (client) => {
    const tokens = await listTokens(client, user);
    const name = await orAsked(input, word, "Token", async () => tokens.map((one) => one.token_name));
    const found = tokens.find((one) => one.token_name === name) ?? tokens.find(({ id }) => id === name);
    if (!found)
      throw await unknownName("token", name, () => tokens.map((one) => one.token_name), "slipway tokens list");
    return found;
  };
};
