// Compares every figure of every report with its slow recomputation, for generated months of use. check-seed.ts runs more seeds.
import { expect, test } from "bun:test";
import {
  ANY_APP,
  BLOCK,
  computeMedian,
  countRuns,
  createBits,
  createBlock,
  Digest,
  getMinutes,
  hasAdjacentBits,
  hasBitIn,
  packDetail,
  packDigest,
  toBlock,
  toRowId,
  toTemplate,
  toUser,
  unpackDetail,
} from "#db/reports/usage/block.ts";
import { randomFrom } from "#test/support/random.ts";
import { checkSeed } from "./check-seed.ts";

test.each([
  [1, 500],
  [Math.floor(Math.random() * 2 ** 31), 60],
  [Math.floor(Math.random() * 2 ** 31), 8],
])("[IN-6] every figure of a month with seed %i and %i people matches the slow recomputation", (seed, people) =>
  checkSeed(seed, people, people > 100 ? 2 : undefined),
);

test("[IN-6] unpacks packed data unchanged, and digests match the buckets", () => {
  const random = randomFrom(7);
  const block = createBlock();
  for (const app of [ANY_APP, 3, 70_000]) {
    const minutes = getMinutes(block, app);
    for (let i = 0; i < BLOCK; i++) if (random() < 0.2 || i === 0) minutes[i] = 1 + Math.floor(random() * 30);
  }
  for (let i = 0; i < BLOCK; i += 5) block.latency[i] = 1 + Math.floor(random() * 1000);
  expect(unpackDetail(packDetail(block))).toEqual(block);
  const digest = new Digest(packDigest(block));
  expect(digest.minutes).toBe(getMinutes(block, ANY_APP).reduce((a, b) => a + b, 0));
  const { bits } = digest;
  for (let i = 0; i < BLOCK; i++) expect(hasBitIn(bits, i, i + 1)).toBe(getMinutes(block, ANY_APP)[i] !== 0);
  const apps: number[] = [];
  digest.eachApp((app, minutes, runs, startsInUse, endsInUse) => {
    const appMinutes = getMinutes(block, app);
    apps.push(app);
    expect([minutes, runs]).toEqual([appMinutes.reduce((a, b) => a + b, 0), countRuns(appMinutes)]);
    expect([startsInUse, endsInUse]).toEqual([appMinutes[0] !== 0, appMinutes[BLOCK - 1] !== 0]);
  });
  expect(apps).toEqual([3, 70_000]);
});

test("[IN-6] row IDs keep their three parts, up to the largest", () => {
  const rows: [number, number, number][] = [
    [0, 1, 1],
    [685, 2 ** 24 - 1, 2 ** 18 - 1],
    [2000, 12, 7],
  ];
  for (const parts of rows) {
    const id = toRowId(...parts);
    expect(Number.isSafeInteger(id)).toBe(true);
    expect([toBlock(id), toUser(id), toTemplate(id)]).toEqual([...parts]);
  }
});

test("[IN-6] adjacent bits touch, even across a byte boundary; medians average two values", () => {
  const toBit = (i: number): Uint8Array => {
    const bits = createBits();
    bits[i >> 3] = 1 << (i & 7);
    return bits;
  };
  for (const [a, b, expected] of [
    [31, 32, true],
    [32, 31, true],
    [1535, 1534, true],
    [5, 5, true],
    [5, 7, false],
    [1535, 0, false],
  ] as const) {
    expect([a, b, hasAdjacentBits(toBit(a), toBit(b))]).toEqual([a, b, expected]);
  }
  expect(computeMedian([])).toBe(0);
  expect(
    computeMedian([
      { ms: 10, count: 1 },
      { ms: 13, count: 1 },
    ]),
  ).toBe(23);
  expect(
    computeMedian([
      { ms: 13, count: 1 },
      { ms: 10, count: 2 },
    ]),
  ).toBe(20);
});
