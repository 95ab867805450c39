// The short form of the test that kills a server while chats with sub-chats are changed; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverFamilies } from "./server-families.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(
  `[SB-1] killed around three commits, a server keeps no sub-chat whose rules differ from those of its root (seed ${SEED})`,
  async () => {
    expect(await serverFamilies({ rounds: 3, seed: SEED, log: () => {} })).toContain("every sub-chat");
  },
  scaleTimeout(240_000),
);
