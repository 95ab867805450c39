// The store is killed at random moments and at each of its failpoints, and reopened (RELIABILITY checks 1, 2 and 12).
import { temporaryDirectory } from "#test/db/deployments.ts";
import { randomFrom } from "#test/support/random.ts";
import { Oracle } from "./store-oracle.ts";
import { runChild } from "./store-run.ts";

/** A check whose long form test/crash/torture.ts runs. It throws if something is wrong. */
export type Check = { name: string; run(options: CheckOptions): Promise<string> };
export type CheckOptions = { rounds: number; seed: number; log(line: string): void };

/** The store's failpoints; the others belong to the actors and the HTTP edge. */
export const STORE_FAILPOINTS = ["in_migration", "before_commit", "after_commit", "in_checkpoint"] as const;

const CLIENTS = 6;

/** Kills a store under load `rounds` times at random, then once at each failpoint. Returns a one-line summary. */
export const storeCrash = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  using temp = temporaryDirectory();
  const directory = temp.path;
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const randomUpTo = (limit: number): number => 1 + Math.floor(random() * limit);
  const order = () => ({ directory, clients: CLIENTS, from: oracle.next(CLIENTS) });
  const check = (moment: string): void => {
    const problems = oracle.check(directory);
    log(`${moment}: ${oracle.acknowledged} batches acknowledged, ${problems.length} problems`);
    if (problems.length > 0) throw new Error(`seed ${seed}, ${moment}: ${problems.slice(0, 5).join("; ")}`);
  };
  const expectKilled = (moment: string, signal: unknown, errors: string): void => {
    if (signal !== "SIGKILL") throw new Error(`seed ${seed}, ${moment}: the process was not killed: ${errors}`);
  };

  const deaths: [(typeof STORE_FAILPOINTS)[number], number][] = [
    ["in_migration", 1],
    // The second commit of a new database reserves the first IDs.
    ["before_commit", 2],
    ["before_commit", randomUpTo(40)],
    ["after_commit", randomUpTo(40)],
    ["in_checkpoint", randomUpTo(5)],
  ];
  for (const [failpoint, count] of deaths) {
    const { signal, errors } = await runChild({ ...order(), failpoint: `${failpoint}:${count}` }, oracle);
    expectKilled(failpoint, signal, errors);
    check(`${failpoint}:${count}`);
  }
  for (let round = 1; round <= rounds; round++) {
    const killAt = oracle.acknowledged + randomUpTo(400);
    const { signal, errors } = await runChild(order(), oracle, {
      onLine: (_line, child) => {
        if (oracle.acknowledged >= killAt) child.kill("SIGKILL");
      },
    });
    expectKilled(`kill ${round}`, signal, errors);
    check(`kill ${round}`);
  }
  const lastRun = await runChild({ ...order(), batches: 20 }, oracle);
  if (lastRun.code !== 0) throw new Error(`seed ${seed}: the last run ended with ${lastRun.code}: ${lastRun.errors}`);
  check("clean end");
  return `${rounds} kills and ${deaths.length} failpoints, ${oracle.acknowledged} acknowledged batches, none lost`;
};

export const checks: readonly Check[] = [{ name: "store: kill -9", run: storeCrash }];
