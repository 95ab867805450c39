// The long form of the workspace model test (test/actors/workspace/life-model.ts): the same random steps, in thousands of runs against
// state.ts and against a running server.
import { type PlayOptions, play } from "#test/actors/workspace/life-commands.ts";
import { SimulatedWorkspaces } from "#test/actors/workspace/life-pure.ts";
import { START } from "#test/actors/workspace/schedule-state.ts";
import { ServerLives } from "#test/api/workspaces/life-server.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";

const STEPS = 80;

const playRuns = async (runs: number, seed: number, open: PlayOptions["open"]): Promise<string> => {
  const counts = await play({ seed, runs, steps: STEPS, open });
  const builds = Object.entries(counts).map(([reason, count]) => `${count} by ${reason}`);
  return `${runs} runs of at most ${STEPS} steps, builds: ${builds.join(", ")}; all match the model`;
};

const checkModel = ({ rounds, seed }: CheckOptions): Promise<string> =>
  playRuns(rounds, seed, async (rules) => ({ now: START, real: new SimulatedWorkspaces(rules, START) }));

const checkServer = async ({ rounds, seed }: CheckOptions): Promise<string> => {
  await using server = await ServerLives.start();
  return await playRuns(rounds, seed, server.open);
};

export const checks: readonly Check[] = [
  { name: "workspaces: model and transitions", run: checkModel },
  { name: "workspaces: model and a server", run: checkServer },
];
