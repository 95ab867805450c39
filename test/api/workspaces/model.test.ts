// Runs the same random steps on a server and on the model of the rules. After each step, responses and workspaces must be equal. The same
// model also checks state.ts, in test/actors/workspace/model.test.ts.
import { expect } from "bun:test";
import { play } from "#test/actors/workspace/life-commands.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ServerLives } from "./life-server.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

testInProcess(
  `[WK-24] [WK-7] after any actions of people and the clock, the server agrees with the model of the rules (seed ${SEED})`,
  async () => {
    await using server = await ServerLives.start();
    const counts = await play({ seed: SEED, runs: 6, steps: 30, open: server.open });
    expect(counts.initiator).toBeGreaterThan(5);
  },
);
