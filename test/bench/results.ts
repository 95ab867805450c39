// Benchmark runs as files in test/results/bench, one per run: written after each row, read for the README and for `--check`.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { computeMedians, type Measurements, median } from "./report.ts";
import type { Row, Verdict } from "./row.ts";

/** One row of a run: every round of both sides, or the reason why it could not be measured. */
export interface StoredRow {
  name: string;
  rounds: Measurements;
  error?: string;
}

export interface StoredRun {
  /** ISO 8601, the start of the run. */
  date: string;
  /** The repository's commit, with `+` if files differed from it. */
  commit: string;
  machine: string;
  product: string;
  rows: StoredRow[];
}

/** Number of earlier runs that a row is compared with. */
const MAX_EARLIER_RUNS = 5;
/** Smaller relative differences are never a regression: two runs of the same program differ that much. */
const MIN_NOISE = 0.1;

/** Writes a run to `<date>-<commit>.json` in the folder. A later call with the same run replaces the file. */
export const writeRun = (folder: string, run: StoredRun): string => {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${run.date.slice(0, 19).replaceAll(":", "")}-${run.commit}.json`);
  writeFileSync(file, `${JSON.stringify(run, roundNumber, 1)}\n`);
  return file;
};

/** Rounds to four significant digits: more digits are noise, and the files are committed. */
const roundNumber = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;

/** Returns the runs stored in the folder, oldest first. */
export const readRuns = (folder: string): StoredRun[] =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".json"))
        .map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")) as StoredRun)
        .sort((a, b) => (a.date < b.date ? -1 : 1))
    : [];

/** Returns the newest measurement of a row, with its date. */
export const findNewest = (
  runs: readonly StoredRun[],
  name: string,
): { date: string; rounds: Measurements } | undefined => {
  for (const run of runs.toReversed()) {
    const found = run.rows.find((row) => row.name === name && row.error === undefined);
    if (found) return { date: run.date.slice(0, 10), rounds: found.rounds };
  }
  return undefined;
};

/** One figure that is worse than before by more than its noise. */
export interface Regression {
  row: string;
  what: string;
  now: number;
  /** Median of the earlier runs. */
  before: number;
  /** The worst value that would not be a regression. */
  limit: number;
}

/**
 * Compares a run with the last five earlier ones of each row. Only ratios are compared, because absolute figures depend on the machine. A
 * ratio is a regression if it is worse than the median of the earlier runs by more than their spread, and by more than a tenth.
 */
export const findRegressions = (rows: readonly Row[], run: StoredRun, earlier: readonly StoredRun[]): Regression[] =>
  run.rows.flatMap(({ name, rounds, error }) => {
    const row = rows.find((candidate) => candidate.name === name);
    if (!row || error !== undefined) return [];
    const history = earlier
      .flatMap((earlierRun) => earlierRun.rows.filter((stored) => stored.name === name && stored.error === undefined))
      .slice(-MAX_EARLIER_RUNS);
    return row.verdicts
      .filter(({ unit }) => unit === "ratio")
      .flatMap((verdict) => findRegression(verdict, name, rounds, history));
  });

const findRegression = (
  { what, value, better }: Verdict,
  row: string,
  rounds: Measurements,
  history: readonly StoredRow[],
): Regression[] => {
  const now = value(computeMedians(rounds));
  const earlierValues = history
    .map((stored) => value(computeMedians(stored.rounds)))
    .filter((earlierValue) => Number.isFinite(earlierValue)) as number[];
  if (now === undefined || earlierValues.length === 0) return [];
  const [lowest, highest, before] = [Math.min(...earlierValues), Math.max(...earlierValues), median(earlierValues)];
  const noise = Math.max(MIN_NOISE * before, highest - lowest);
  const limit = better === "higher" ? before - noise : before + noise;
  // A figure that cannot be measured any more is always a regression.
  const isWorse = Number.isNaN(now) || (better === "higher" ? now < limit : now > limit);
  return isWorse ? [{ row, what, now, before, limit }] : [];
};
