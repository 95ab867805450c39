// A running server, through the public client, against the rules model that also checks state.ts in test/actors/workspace/model.test.ts:
// the same random steps, the same responses, the same workspaces after each step.
import { expect } from "bun:test";
import { play } from "#test/actors/workspace/life-commands.ts";
import { testInside } from "#test/support/inside.ts";
import { ServerLives } from "./life-server.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

testInside(
  `[WK-24] [WK-7] whatever people and the clock do, a server and the model of the rules agree (seed ${SEED})`,
  async () => {
    await using server = await ServerLives.start();
    const seen = await play({ seed: SEED, runs: 6, steps: 30, open: server.open });
    expect(seen.initiator).toBeGreaterThan(5);
  },
);
