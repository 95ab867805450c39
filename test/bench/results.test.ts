// The files of benchmark runs: reading them, which run of a row counts, and what is a regression.
import { expect, test } from "bun:test";
import { tempDirectory } from "#test/support/server.ts";
import { findNewest, findRegressions, readRuns, type StoredRun, writeRun } from "./results.ts";
import { productRatio, type Row } from "./row.ts";

const row: Row = {
  name: "sample",
  title: "a row",
  sides: ["floor", "product"],
  measure: () => Promise.resolve({}),
  figures: { speed: "speed" },
  verdicts: [
    { what: "speed", target: ">= 0.7", value: productRatio("speed"), bound: 0.7, better: "higher", unit: "ratio" },
  ],
};

/** Creates a run on this day in which the product reached this share of the baseline. */
const makeRun = (day: number, ratio: number, error?: string): StoredRun => ({
  date: `2026-11-${String(day).padStart(2, "0")}T10:00:00.000Z`,
  commit: "abc1234",
  machine: "two cores",
  product: "compiled binary",
  rows: [
    {
      name: "sample",
      rounds: { floor: [{ speed: 100 }], product: [{ speed: 100 * ratio }] },
      ...(error === undefined ? {} : { error }),
    },
  ],
});

test("[BM-4] reads the results of a run, and finds the newest run that measured the row", () => {
  using temp = tempDirectory();
  expect(readRuns(`${temp.path}/none`)).toEqual([]);
  const secondRun = makeRun(2, 0.8123456);
  writeRun(temp.path, secondRun);
  writeRun(temp.path, makeRun(1, 0.7));
  writeRun(temp.path, makeRun(3, 0.9, "the floor ended"));
  writeRun(temp.path, secondRun);
  // Two runs in the same minute are both kept.
  writeRun(temp.path, { ...makeRun(1, 0.6), date: "2026-11-01T10:00:40.000Z" });
  const runs = readRuns(temp.path);
  expect(runs.map(({ date }) => date.slice(8, 10))).toEqual(["01", "01", "02", "03"]);
  expect(findNewest(runs, "sample")).toEqual({
    date: "2026-11-02",
    rounds: { floor: [{ speed: 100 }], product: [{ speed: 81.23 }] },
  });
  expect(findNewest(runs, "other")).toBeUndefined();
});

test("[BM-6] reports a regression if a ratio is worse than in earlier runs by more than their spread and a tenth", () => {
  const hasRegression = (now: StoredRun, earlier: StoredRun[]) => findRegressions([row], now, earlier).length > 0;
  const steadyRuns = [makeRun(1, 0.8), makeRun(2, 0.81), makeRun(3, 0.79)];
  expect(hasRegression(makeRun(9, 0.73), steadyRuns)).toBe(false);
  expect(hasRegression(makeRun(9, 0.71), steadyRuns)).toBe(true);
  const noisyRuns = [makeRun(1, 0.6), makeRun(2, 0.8), makeRun(3, 0.9)];
  expect(hasRegression(makeRun(9, 0.55), noisyRuns)).toBe(false);
  expect(hasRegression(makeRun(9, 0.45), noisyRuns)).toBe(true);
  // An improvement is not a regression, and the first run has nothing to compare with.
  expect(hasRegression(makeRun(9, 2), steadyRuns)).toBe(false);
  expect(hasRegression(makeRun(9, 0.1), [])).toBe(false);
  // Only the last five runs that measured the row count.
  const oldRuns = [makeRun(1, 0.2), ...[2, 3, 4, 5, 6].map((day) => makeRun(day, 0.8))];
  expect(hasRegression(makeRun(9, 0.5), oldRuns)).toBe(true);
  expect(hasRegression(makeRun(9, 0.5), [makeRun(1, 0.9, "failed")])).toBe(false);
  expect(hasRegression(makeRun(9, 0.1, "failed"), steadyRuns)).toBe(false);
});

test("[BM-6] reports a regression if a lower-is-better ratio has grown", () => {
  const slower: Row = { ...row, verdicts: row.verdicts.map((verdict) => ({ ...verdict, better: "lower" as const })) };
  expect(findRegressions([slower], makeRun(9, 1.3), [makeRun(1, 1), makeRun(2, 1.05)])).toMatchObject([
    { row: "sample", what: "speed" },
  ]);
  expect(findRegressions([slower], makeRun(9, 1.1), [makeRun(1, 1), makeRun(2, 1.05)])).toEqual([]);
});
