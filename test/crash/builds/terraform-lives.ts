// The lifecycles of all templates, one after the other: without faults, and with a server or worker killed at a random moment of every
// build that should succeed.

import { TEMPLATES } from "#test/provisioners/terraform/comparison.ts";
import { runLife } from "#test/provisioners/terraform/life/life.ts";
import { openStage, type Victim } from "#test/provisioners/terraform/life/stage.ts";
import { needs } from "#test/support/needs.ts";
import { randomFrom } from "#test/support/random.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";

/** Maximum milliseconds from a build's request to the kill, about the duration of a build. */
const MAX_KILL_DELAY_MS = 3_000;

const runWithoutFaults = async (): Promise<void> => {
  await using stage = await openStage("server");
  for (const template of TEMPLATES) await runLife(stage, { template });
};

const runWithKills = async (victim: Victim, { seed, log }: CheckOptions): Promise<number> => {
  await using stage = await openStage(victim);
  const random = randomFrom(seed);
  let kills = 0;
  const disturb = async (): Promise<void> => {
    await Bun.sleep(random() * MAX_KILL_DELAY_MS);
    await stage.kill(victim);
    kills += 1;
  };
  for (const template of TEMPLATES) {
    await runLife(stage, { template, disturb });
    log(`${template}: passed with ${kills} kills of the ${victim} so far`);
  }
  return kills;
};

const runRounds = async (options: CheckOptions): Promise<string> => {
  const kills = { server: 0, worker: 0 };
  for (let round = 1; round <= options.rounds; round++) {
    await runWithoutFaults();
    options.log("all passed without faults");
    for (const victim of ["server", "worker"] as const) {
      kills[victim] += await runWithKills(victim, { ...options, seed: options.seed + round });
    }
  }
  return `${TEMPLATES.length} templates passed ${options.rounds * 3} times each, with ${kills.server} kills of the server and ${kills.worker} of the worker: terminal and chat worked, no state lost, no process left running, no secret in a log, a response or a file`;
};

export const checks: readonly Check[] = needs.terraform.found
  ? [{ name: "terraform: lives of templates", run: runRounds }]
  : [];
