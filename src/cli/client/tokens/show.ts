// `slipway tokens show TOKEN [--user USER]`: a token's scopes, allowed addresses and expiry.
import type { ApiKey } from "#schema/users/api-key.ts";
import { readArguments } from "../../arguments.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectToken } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"] });
  const named = selectToken(input, words, value.user);
  return withServer("tokens show", input, value, async ({ client }) => {
    const token = await named(client);
    input.print(has.json ? JSON.stringify(token) : describeToken(token, input.clock.now()));
    return EXIT.ok;
  });
};

/** Formats a token with one row per field. */
export const describeToken = (token: ApiKey, now: number): string => {
  const rows: [string, string][] = [
    ["Token", `${token.token_name} (${token.id})`],
    ["User", token.username],
    ["Scopes", token.scopes.join(", ")],
    ["Networks", token.allowed_addresses.join(", ") || "everywhere"],
    ["Created", formatRelative(token.created_at, now)],
    ["Last used", formatRelative(token.last_used, now)],
    ["Expires", formatRelative(token.expires_at, now)],
  ];
  return rows.map(([head, text]) => `${head.padEnd(9)}  ${toPlainLine(text)}`).join("\n");
};
