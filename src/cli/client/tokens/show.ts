// `slipway tokens show TOKEN [--user USER]`: a token's scopes, allowed addresses and expiry.
import type { ApiKey } from "#schema/users/api-key.ts";
import { readArguments } from "../../arguments.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { tokenAsked } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"] });
  const named = tokenAsked(input, words, value.user);
  return withServer("tokens show", input, value, async ({ client }) => {
    const token = await named(client);
    input.print(has.json ? JSON.stringify(token) : described(token, input.clock.now()));
    return EXIT.ok;
  });
};

/** Formats a token with one row per field. */
export const described = (token: ApiKey, now: number): string => {
  const rows: [string, string][] = [
    ["Token", `${token.token_name} (${token.id})`],
    ["User", token.username],
    ["Scopes", token.scopes.join(", ")],
    ["Networks", token.allowed_addresses.join(", ") || "everywhere"],
    ["Created", relative(token.created_at, now)],
    ["Last used", relative(token.last_used, now)],
    ["Expires", relative(token.expires_at, now)],
  ];
  return rows.map(([head, text]) => `${head.padEnd(9)}  ${plain(text)}`).join("\n");
};
