// `slipway tokens show TOKEN [--user USER]`: a token's scopes, allowed addresses and expiry.
import type { ApiKey } from "#schema/users/api-key.ts";
import { readArguments } from "../../arguments.ts";
import { formatFields } from "../../options.ts";
import { formatRelative } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectToken } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"] });
  const findToken = selectToken(input, words, value.user);
  return withServer("tokens show", input, value, async ({ client }) => {
    const token = await findToken(client);
    input.print(has.json ? JSON.stringify(token) : describeToken(token, input.clock.now()));
  });
};

/** Formats when a token was last used: a new one has the time of its creation. */
export const formatLastUsed = ({ last_used, created_at }: ApiKey, now: number): string =>
  last_used === created_at ? "never" : formatRelative(last_used, now);

/** Formats a token with one row per field. */
export const describeToken = (token: ApiKey, now: number): string =>
  formatFields([
    ["Token", `${token.token_name} (${token.id})`],
    ["User", token.username],
    ["Scopes", token.scopes.join(", ")],
    ["Networks", token.allowed_addresses.join(", ") || "everywhere"],
    ["Created", formatRelative(token.created_at, now)],
    ["Last used", formatLastUsed(token, now)],
    ["Expires", formatRelative(token.expires_at, now)],
  ]);
