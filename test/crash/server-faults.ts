// A server on a failing disk: the n-th flush or write of its database fails (RELIABILITY checks 5 and 6).
import { findDatabaseProblems } from "./oracle/database.ts";
import { assertNoProblems, Torture } from "./server-crash.ts";
import type { Check, CheckOptions } from "./store/store-crash.ts";
import { compileFaults, faultSkipReason } from "./store/store-faults.ts";

export type ServerFault = {
  /** In the format of test/crash/faults/fault.c. */
  fault: string;
  /** True if the process must end; false if it must continue as if nothing had happened. */
  endsProcess: boolean;
};

/** The faults that are always tested. The number says at which call the fault starts. */
const FAULTS: readonly ((n: number) => ServerFault)[] = [
  (n) => ({ fault: `fsync:${n}:EIO`, endsProcess: true }),
  (n) => ({ fault: `fsync:${n}:EIO:1`, endsProcess: true }),
  (n) => ({ fault: `write:${n}:EIO`, endsProcess: true }),
  (n) => ({ fault: `write:${n}:EIO:1`, endsProcess: false }),
  (n) => ({ fault: `write:${n}:ENOSPC:20`, endsProcess: false }),
  (n) => ({ fault: `write:${n}:SHORT:20`, endsProcess: false }),
];

/** How long the process may run after its first failed flush. */
const MAX_STOP_MS = 1000;

/** Breaks the disk in every way `rounds` times. Returns a one-line summary. */
export const serverFaults = async ({ rounds, seed, log }: CheckOptions): Promise<string> => {
  await using torture = await Torture.make(seed, { agents: 3, builders: 2, daemons: 0 });
  const library = compileFaults(torture.place.scratch);
  await torture.place.stop();
  torture.begin();
  let slowest = 0;
  for (let round = 1; round <= rounds; round++) {
    for (const createFault of FAULTS) {
      const fault = createFault(30 + Math.floor(torture.random() * 60));
      const result = await withFault(torture, library, fault);
      assertNoProblems(seed, fault.fault, result.problems);
      slowest = Math.max(slowest, result.stopMs);
      log(
        `${fault.fault}: ${fault.endsProcess ? `ended after ${result.stopMs.toFixed(0)} ms` : `${result.failures} calls failed`}`,
      );
    }
  }
  await torture.restart();
  assertNoProblems(seed, "the end", await torture.finish());
  return `${rounds} times ${FAULTS.length} faults, ${torture.acknowledged} acknowledged calls, none lost; stopped within ${slowest.toFixed(0)} ms`;
};

/** Runs one server on a failing disk, then one on a good disk. Leaves no server running. */
const withFault = async (
  torture: Torture,
  library: string,
  { fault, endsProcess }: ServerFault,
): Promise<{ problems: string[]; stopMs: number; failures: number }> => {
  const { place, world, writers } = torture;
  const failuresBefore = torture.failures;
  const env = { ...Torture.env, LD_PRELOAD: library, FAULT: fault, FAULT_FILES: "slipway.db" };
  const problems: string[] = [];
  let stopMs = 0;
  // A fault before the server listens may make it fail to start, with a message.
  const isListening = await place.start({ env }).then(
    () => true,
    () => false,
  );
  const server = place.currentProcess;
  const listeningSince = performance.now();
  if (endsProcess || !isListening) {
    const { code, signal, errors } = await server.ended;
    const failureTimes = writers.map(({ failedAt }) => failedAt).filter((failedAt) => failedAt > listeningSince);
    stopMs = failureTimes.length > 0 ? performance.now() - Math.min(...failureTimes) : 0;
    if (signal || code === 0) problems.push(`the process ended with ${signal || code}`);
    if (!/can no longer be written|disk I\/O error|disk is full/.test(errors))
      problems.push(`the process did not give a reason: ${errors.slice(-600)}`);
    if (stopMs > MAX_STOP_MS) problems.push(`the process kept running for ${stopMs.toFixed(0)} ms`);
  } else {
    for (let reads = 0; reads < 20; reads++) {
      const response = await world.admin.fetch("GET", "/api/v2/workspaces?limit=1");
      if (!response.ok) problems.push(`a read was answered ${response.status}`);
      await torture.progress(20);
    }
    problems.push(...(await torture.findProblems()));
    server.kill("SIGKILL");
    await server.ended;
  }
  const failures = torture.failures - failuresBefore;
  problems.push(...(await findDatabaseProblems(place.directory)));
  const restarted = await torture.restart();
  await torture.progress(20);
  problems.push(...(await torture.findProblems()));
  restarted.kill("SIGKILL");
  await restarted.ended;
  return { problems, stopMs, failures };
};

export const checks: readonly Check[] =
  faultSkipReason() === "" ? [{ name: "server: failing disk", run: serverFaults }] : [];
