// The short form of the test that kills a server during claims of prebuilt workspaces; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { serverPrebuilds } from "./server-prebuilds.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[PB-14] killed while users claim prebuilds, a server gives no prebuild to two users and takes none back (seed ${SEED})`, async () => {
  expect(await serverPrebuilds({ rounds: 1, seed: SEED, log: () => {} })).toContain("none lost");
});
