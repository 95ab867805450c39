// `slipway tokens list [--user USER | --all] [--expired]`: lists tokens, without their secrets.
import { usageError } from "#base/usage-error.ts";
import { readArguments, requireNoWords } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { toTokensPath } from "./find.ts";
import { formatLastUsed } from "./show.ts";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["user"], switches: ["all", "expired"] });
  requireNoWords(words);
  if (has.all && value.user !== undefined) throw usageError("--all", "not with --user");
  const query = new URLSearchParams({ include_all: String(has.all), include_expired: String(has.expired) });
  return withServer("tokens list", input, value, async ({ client }) => {
    const tokens = await client.get(`${toTokensPath(value.user)}?${query}`);
    const now = input.clock.now();
    const rows = tokens.map((one) => [
      one.id,
      ...(has.all ? [one.username] : []),
      toPlainLine(one.token_name),
      one.scopes.join(","),
      one.allowed_addresses.join(",") || "-",
      formatLastUsed(one, now),
      formatRelative(one.expires_at, now),
    ]);
    const head = ["ID", ...(has.all ? ["USER"] : []), "NAME", "SCOPES", "FROM", "LAST USED", "EXPIRES"];
    if (has.json) input.print(JSON.stringify(tokens));
    else if (rows.length === 0) input.print("No tokens. Create one with `slipway tokens create NAME`.");
    else input.print(formatTable(head, rows));
  });
};
