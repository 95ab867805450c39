// The short form of the test that backs up a server under load; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { checks } from "./server-backup.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[OP-1] [OP-2] [OP-4] a backup made under load is a committed state with everything that was acknowledged before (seed ${SEED})`, async () => {
  const [check] = checks;
  expect(await check?.run({ rounds: 1, seed: SEED, log: () => {} })).toContain("each restored to a committed state");
});
