// Rounds of faults on three nodes, with a one-line summary.
import { LEASE_MS } from "#test/support/cluster.ts";
import { randomFrom } from "#test/support/random.ts";
import type { CheckOptions } from "../store/store-crash.ts";
import type { ShardsCounts } from "./shards-load.ts";

export type Pause = { readonly fault: string; readonly ms: number };
export type TortureResult = {
  readonly acknowledged: number;
  readonly unknown: number;
  readonly refused: number;
  /** The longest time without an acknowledged write after each fault. */
  readonly pauses: readonly Pause[];
  readonly problems: readonly string[];
  /** Counts of the people's work in several shards. */
  readonly parts?: ShardsCounts;
};

const findLongestPause = (pauses: readonly Pause[]): Pause =>
  pauses.reduce((longest, pause) => (pause.ms > longest.ms ? pause : longest), { fault: "none", ms: 0 });

const addCounts = (a: ShardsCounts | undefined, b: ShardsCounts | undefined): ShardsCounts | undefined =>
  a && b
    ? {
        lines: a.lines + b.lines,
        connections: a.connections + b.connections,
        builds: a.builds + b.builds,
        starts: a.starts + b.starts,
      }
    : (a ?? b);

const formatCounts = (parts: ShardsCounts | undefined): string =>
  parts
    ? `, ${parts.lines} lines, ${parts.builds} builds, ${parts.starts} scheduled starts and ${parts.connections} connections of followers`
    : "";

export type TortureRun = (faults: readonly string[], seed: number) => Promise<TortureResult>;

/** Runs rounds of the faults, each in random order if `isShuffled`. Returns a one-line summary. */
export const tortureRounds = async (
  { rounds, seed, log }: CheckOptions,
  { faults, isShuffled = true, run }: { faults: readonly string[]; isShuffled?: boolean; run: TortureRun },
): Promise<string> => {
  let [acknowledged, unknown, refused] = [0, 0, 0];
  let parts: ShardsCounts | undefined;
  const pauses: Pause[] = [];
  for (let round = 0; round < rounds; round++) {
    const random = randomFrom(seed + round);
    const order = faults.map((fault) => [isShuffled ? random() : 0, fault] as const).sort(([a], [b]) => a - b);
    const result = await run(
      order.map(([, fault]) => fault),
      seed + round,
    );
    if (result.problems.length > 0) throw new Error(`seed ${seed + round}: ${result.problems.slice(0, 5).join("; ")}`);
    acknowledged += result.acknowledged;
    unknown += result.unknown;
    refused += result.refused;
    parts = addCounts(parts, result.parts);
    pauses.push(...result.pauses);
    const longest = findLongestPause(result.pauses);
    log(
      `round ${round}: ${result.acknowledged} acknowledged, longest pause ${Math.round(longest.ms)} ms after ${longest.fault}${formatCounts(result.parts)}`,
    );
  }
  const longest = findLongestPause(pauses);
  return `${acknowledged} writes acknowledged${formatCounts(parts)}, none lost; ${refused} refused, none stored; ${unknown} unknown, none stored twice; no node has written after the next one; longest pause ${(longest.ms / 1000).toFixed(1)} s (${longest.fault}) with a lease of ${LEASE_MS / 1000} s`;
};
