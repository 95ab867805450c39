// The short form of the tests that kill a whole server at random moments, on either database; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { serverCrash } from "./server-crash.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[CR-1] [CR-2] [CR-3] killed twice at random moments under load, a server loses nothing that it acknowledged (seed ${SEED})`, async () => {
  expect(await serverCrash({ rounds: 2, seed: SEED, log: () => {} })).toContain("none lost");
});
