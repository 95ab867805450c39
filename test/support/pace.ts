// Limits of time are those of the machine they were written on. A slower one gets longer ones: test/run.ts measures it once, at its start, and
// hands the result to the processes of the tests.
import { availableParallelism } from "node:os";

/** The variable that carries the factor from test/run.ts to the tests. */
export const PACE_VARIABLE = "SLIPWAY_TEST_PACE";
/** Longer limits than this would hide what hangs. */
const MAX_PACE = 6;
/** What the measurement takes on the machine that the limits were written on, in ms. */
const REFERENCE_MS = 330;

const pace = Math.min(MAX_PACE, Math.max(1, Number(process.env[PACE_VARIABLE] ?? 1) || 1));

/** Returns a limit in ms as it is on this machine. */
export const scaled = (ms: number): number => Math.ceil(ms * pace);

/**
 * Measures this machine: how many times longer than on the reference machine all its cores need for a fixed piece of work, 1 at least. All
 * cores in parallel, so that a quota of processor time counts, too.
 */
export const measurePace = async (): Promise<number> => {
  const workers = Array.from(
    { length: Math.min(2, availableParallelism()) },
    () => new Worker(new URL("./pace-worker.ts", import.meta.url)),
  );
  const done = workers.map(
    (worker) => new Promise<number>((resolve) => (worker.onmessage = ({ data }) => resolve(data))),
  );
  for (const worker of workers) worker.postMessage("measure");
  const times = await Promise.all(done);
  for (const worker of workers) worker.terminate();
  const oneCore = availableParallelism() === 1 ? 2 : 1;
  return Math.min(MAX_PACE, Math.max(1, (Math.max(...times) * oneCore) / REFERENCE_MS));
};
