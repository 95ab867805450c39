// A server under mixed load for a long time: memory, file descriptors, log, actors and mailboxes do not grow (RELIABILITY check 39). A
// round is a minute; the full form takes an hour.
import { findFreePort } from "./server.ts";
import { assertNoProblems, Torture } from "./server-crash.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const MIB = 2 ** 20;
const SAMPLE_MS = 5_000;
/** The gap between two batches of a writer, for a third of the possible load. */
const GAP_MS = 40;
const MAX_WAL_BYTES = 65 * MIB;

/**
 * The checked metrics. `maxIncrease` returns how much the median of the last third of the run may exceed that of the second third, `before`.
 * `pace`: the calls in the last third, divided by those in the second.
 */
const FIGURES: readonly { name: string; maxIncrease(before: number, pace: number): number }[] = [
  { name: "process_resident_memory_bytes", maxIncrease: (before) => 24 * MIB + before * 0.1 },
  { name: "process_open_fds", maxIncrease: () => 12 },
  // Builds keep creating workspaces, and each leaves memory after a minute without use, so their number follows the number of calls.
  { name: "slipway_actors_live", maxIncrease: (before, pace) => 20 + before * (pace * 1.5 - 1) },
  { name: "slipway_mailbox_waiting", maxIncrease: () => 20 },
  { name: "slipway_sockets_open", maxIncrease: () => 4 },
];
const WAL = "slipway_wal_bytes";

/** Returns the sum of each metric over its labels. */
const scrape = async (address: string): Promise<Map<string, number>> => {
  const sums = new Map<string, number>();
  for (const line of (await (await fetch(`http://${address}/metrics`)).text()).split("\n")) {
    const [, name, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return sums;
};

const median = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? 0;

const soak = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 4, builders: 2, daemons: 0, gapMs: GAP_MS });
  await torture.place.stop();
  const address = `127.0.0.1:${await findFreePort()}`;
  // The cache fills within a minute, so that its growth does not look like a leak.
  await torture.restart({ env: { SLIPWAY_METRICS_ADDRESS: address, SLIPWAY_DATABASE_CACHE_MB: "8" } });
  torture.begin();
  const samples: Map<string, number>[] = [];
  const calls: number[] = [];
  const deadline = performance.now() + rounds * 60_000;
  while (performance.now() < deadline) {
    await Bun.sleep(SAMPLE_MS);
    samples.push(await scrape(address));
    calls.push(torture.acknowledged);
    const getLast = (name: string): number => samples.at(-1)?.get(name) ?? 0;
    const [rss, wal] = [getLast("process_resident_memory_bytes") / MIB, getLast(WAL) / MIB];
    if (samples.length % 12 === 0) {
      log(
        `minute ${samples.length / 12}: ${torture.acknowledged} calls, memory ${rss.toFixed(0)} MiB, log ${wal.toFixed(1)} MiB`,
      );
    }
  }
  const third = Math.floor(samples.length / 3);
  const [firstCalls = 0, secondCalls = 0, lastCalls = 0] = [calls[third], calls[2 * third], calls.at(-1)];
  // The machine is shared, so the available CPU changes from minute to minute.
  const pace = Math.max(1, (lastCalls - secondCalls) / Math.max(1, secondCalls - firstCalls));
  const problems: string[] = [];
  const measurements: string[] = [];
  for (const { name, maxIncrease } of FIGURES) {
    const getMedian = (part: Map<string, number>[]): number =>
      median(part.map((sample) => sample.get(name) ?? Number.NaN));
    const [before, after] = [getMedian(samples.slice(third, 2 * third)), getMedian(samples.slice(2 * third))];
    const formatValue = (value: number): string =>
      name.endsWith("_bytes") ? `${(value / MIB).toFixed(0)} MiB` : `${value}`;
    measurements.push(`${name} ${formatValue(before)} and ${formatValue(after)}`);
    if (!(after <= before + maxIncrease(before, pace)))
      problems.push(`${name} went from ${formatValue(before)} to ${formatValue(after)}`);
  }
  const wal = Math.max(...samples.map((sample) => sample.get(WAL) ?? 0));
  if (wal > MAX_WAL_BYTES) problems.push(`the log reached ${(wal / MIB).toFixed(0)} MiB`);
  problems.push(...(await torture.finish()));
  assertNoProblems(seed, "a soak", problems);
  return `${rounds} minutes, ${torture.acknowledged} acknowledged calls, none lost; second and last third: ${measurements.join(", ")}; log at most ${(wal / MIB).toFixed(1)} MiB`;
};

export const checks: readonly Check[] = [{ name: "server: soak", run: soak }];
