// The short form of the test that kills a server with active chats; `bun run torture` has the long one.
import { expect, test } from "bun:test";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverChats } from "./server-chats.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(
  `[CH-35] killed twice while chats stream, a server loses no acknowledged message, uses no ID twice and continues all chats (seed ${SEED})`,
  async () => {
    expect(await serverChats({ rounds: 2, seed: SEED, log: () => {} })).toContain("none lost or duplicated");
  },
  scaleTimeout(240_000),
);
