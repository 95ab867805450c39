// The short form of the test that kills a server during hook calls; `bun run torture` has the long one.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverHooks } from "./server-hooks.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

testNeeding(
  [needs.python3],
  `[HK-16] killed around a dispatch, a server keeps no message without its hook, and repeats no hook of a stored call (seed ${SEED})`,
  async () => {
    expect(await serverHooks({ rounds: 1, seed: SEED, log: () => {} })).toContain("every history consistent");
  },
  scaleTimeout(240_000),
);
