// The short form of the test that kills a server under a working chat; `bun run torture` has the long one.
import { expect } from "bun:test";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer } from "#test/support/one-server.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverStory } from "./server-story.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

testNeeding(
  [needs.git, requireSingleServer("needsLocalServerProcess")],
  `[EE-2] killed while a chat codes, a server continues the chat: same repository and history, and no command runs twice (seed ${SEED})`,
  async () => {
    expect(await serverStory({ rounds: 1, seed: SEED, log: () => {} })).toContain("the same repository");
  },
  scaleTimeout(240_000),
);
