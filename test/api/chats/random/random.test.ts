// The short form of random chat commands; `bun run torture` has the long one. SLIPWAY_TEST_COMMANDS sets the length, and SLIPWAY_TEST_SEED
// reproduces a run.
import { expect } from "bun:test";
import { testInProcess } from "#test/support/in-process.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { runRandomChats } from "./random-run.ts";

const COMMANDS = Number(process.env.SLIPWAY_TEST_COMMANDS ?? 300);
const SEED = Number(process.env.SLIPWAY_TEST_SEED ?? Date.now() % 2_147_483_647);

testInProcess(
  `[CH-37] concurrent clients cause only commits from the transition table; every follower ends with the state of the database (seed ${SEED})`,
  async () => {
    expect(await runRandomChats({ commands: COMMANDS, seed: SEED })).toContain("all in the table");
  },
  scaleTimeout(240_000),
);

testInProcess(
  `[CH-10] twenty clients race for one queue, and each message is processed once, in the order of the table (seed ${SEED})`,
  async () => {
    const summary = await runRandomChats({ commands: COMMANDS, seed: SEED, chats: 1, clients: 20, queueOnly: true });
    expect(summary).toContain("all in the table");
  },
  scaleTimeout(240_000),
);
