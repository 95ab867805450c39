// `slipway connections list [WORDS…] [--limit N]`: the connection log; the words are search terms.
import { usageError } from "#base/usage-error.ts";
import type { ConnectionLog } from "#schema/connections.ts";
import { readArguments } from "../../arguments.ts";
import { formatTable } from "../../options.ts";
import { formatRelative, formatSpan, toPlainLine } from "../../text.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const DEFAULT_LIMIT = "50";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: ["limit"] });
  const { limit = DEFAULT_LIMIT } = value;
  if (!/^[1-9]\d{0,2}$/.test(limit)) throw usageError("--limit", "expected a number of entries, 1 to 999");
  return withServer("connections list", input, value, async ({ client }) => {
    const query = new URLSearchParams({ q: words.join(" "), limit });
    const { connection_logs } = await client.get(`/api/v2/connectionlog?${query}`);
    const now = input.clock.now();
    if (has.json) input.print(JSON.stringify(connection_logs));
    else if (connection_logs.length === 0) input.print("No connections.");
    else
      input.print(
        formatTable(
          COLUMNS,
          connection_logs.map((one) => toRow(one, now)),
        ),
      );
  });
};

const COLUMNS = ["WHO", "HOW", "WORKSPACE", "SINCE", "FOR", "FROM"] as const;

const toRow = (one: ConnectionLog, now: number): string[] => {
  const end = one.disconnect_time === null ? now : Date.parse(one.disconnect_time);
  const duration = formatSpan(end - Date.parse(one.connect_time)) || "less than a minute";
  return [
    one.user?.username ?? "-",
    toPlainLine([one.type, one.target].filter(Boolean).join(" ")),
    toPlainLine(`${one.workspace_owner_username}/${one.workspace_name}`),
    formatRelative(one.connect_time, now),
    one.disconnect_time === null ? `${duration}, open` : duration,
    one.ip ?? "-",
  ];
};
