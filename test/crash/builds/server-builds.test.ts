// The short form of the test that kills a server during automatic builds; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverBuilds } from "./server-builds.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(
  `[CR-2] [CR-17] [PB-14] killed during builds, claims and scheduled stops, a server loses and duplicates nothing (seed ${SEED})`,
  async () => {
    expect(await serverBuilds({ rounds: 1, seed: SEED, log: () => {} })).toContain("none lost or duplicated");
  },
  scaleTimeout(240_000),
);
