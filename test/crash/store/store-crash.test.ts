// The short form of the store's crash tests; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { FAILPOINTS } from "#base/failpoint.ts";
import { STORE_FAILPOINTS, storeCrash } from "./store-crash.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[ST-6] [ST-12] acknowledged writes survive kill -9 at any moment and at each failpoint (seed ${SEED})`, async () => {
  const lines: string[] = [];
  expect(await storeCrash({ rounds: 3, seed: SEED, log: (line) => lines.push(line) })).toContain("none lost");
  for (const failpoint of STORE_FAILPOINTS) expect(lines.some((line) => line.startsWith(failpoint))).toBe(true);
});

test("[ST-6] the store's failpoints exist", () => {
  expect(FAILPOINTS).toEqual(expect.arrayContaining([...STORE_FAILPOINTS]));
});
