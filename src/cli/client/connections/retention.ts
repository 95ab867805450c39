// `slipway connections retention [DAYS]`: shows or sets how long the connection log is kept.
import { usageError } from "#base/usage-error.ts";
import { readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";

const PATH = "/api/v2/connectionlog/retention";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv);
  const [days, more] = words;
  if (more !== undefined) throw usageError(more, "unexpected argument");
  if (days !== undefined && !/^\d{1,5}$/.test(days))
    throw usageError(days, "expected a number of days; 0 keeps entries forever");
  return withServer("connections retention", input, value, async ({ client }) => {
    const retention = days === undefined ? await client.get(PATH) : await client.put(PATH, { days: Number(days) });
    const period = retention.days === 0 ? "forever" : `for ${retention.days} day${retention.days === 1 ? "" : "s"}`;
    input.print(has.json ? JSON.stringify(retention) : `Connections are kept ${period}.`);
  });
};
