// state.ts and its pure functions against a model based only on the rules; test/api/workspaces/model.test.ts applies the same steps to a
// running server.
import { expect, test } from "bun:test";
import { play } from "./life-commands.ts";
import { SimulatedWorkspaces } from "./life-pure.ts";
import { START } from "./schedule-state.ts";

const SEED = Number(Bun.env.SLIPWAY_TEST_SEED ?? Date.now() % 1_000_000);

test(`[WK-24] [WK-7] whatever people and the clock do, the transitions and the model of the rules agree (seed ${SEED})`, async () => {
  const open = async (rules: ConstructorParameters<typeof SimulatedWorkspaces>[0]) => ({
    now: START,
    real: new SimulatedWorkspaces(rules, START),
  });
  const reasonCounts = await play({ seed: SEED, runs: 150, steps: 60, open });
  // The test is meaningful only if something happened.
  expect(Object.keys(reasonCounts).sort()).toEqual(["autodelete", "autostart", "autostop", "dormancy", "initiator"]);
});
