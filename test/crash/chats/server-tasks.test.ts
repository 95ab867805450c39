// A server killed between the response to a new task and the start of its chat.
import { expect, test } from "bun:test";
import { scaleTimeout } from "#test/support/pace.ts";
import { serverTasks } from "./server-tasks.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(
  `[TK-1] [TK-2] killed after new tasks, a server gives each task its prompt once (seed ${SEED})`,
  async () => {
    expect(await serverTasks({ rounds: 2, seed: SEED, log: () => {} })).toContain("none without its prompt");
  },
  scaleTimeout(240_000),
);
