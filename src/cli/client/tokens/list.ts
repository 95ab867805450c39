// `slipway tokens list [--user USER | --all] [--expired]`: lists tokens, without their secrets.
import { usageError } from "#base/usage-error.ts";
import { noWords, readArguments } from "../../arguments.ts";
import { asTable } from "../../options.ts";
import { plain, relative } from "../../text.ts";
import { EXIT, type RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { tokensPath } from "./find.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"], switches: ["all", "expired"] });
  noWords(words);
  if (has.all && value.user !== undefined) throw usageError("--all", "not with --user");
  const query = new URLSearchParams({ include_all: String(has.all), include_expired: String(has.expired) });
  return withServer("tokens list", input, value, async ({ client }) => {
    const tokens = await client.get(`${tokensPath(value.user)}?${query}`);
    const now = input.clock.now();
    const rows = tokens.map((one) => [
      one.id,
      ...(has.all ? [one.username] : []),
      plain(one.token_name),
      one.scopes.join(","),
      one.allowed_addresses.join(",") || "-",
      relative(one.last_used, now),
      relative(one.expires_at, now),
    ]);
    const head = ["ID", ...(has.all ? ["USER"] : []), "NAME", "SCOPES", "FROM", "LAST USED", "EXPIRES"];
    if (has.json) input.print(JSON.stringify(tokens));
    else if (rows.length === 0) input.print("No tokens. Create one with `slipway tokens create NAME`.");
    else input.print(asTable(head, rows));
    return EXIT.ok;
  });
};
