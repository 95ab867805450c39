// Scales timeouts for slow machines: they were chosen on one reference machine. test/run.ts measures the machine once and passes the factor
// to the test processes. Without that, as in a plain `bun test`, the factor is 1.
import { availableParallelism } from "node:os";

/** The variable that passes the factor from test/run.ts to the tests. */
export const PACE_VARIABLE = "SLIPWAY_TEST_PACE";
/** The time limit of a test or hook before scaling. It is longer than the timeout of `until`, whose error says what did not happen. */
export const TEST_TIMEOUT_MS = 120_000;
/** Longer timeouts would hide hangs. */
const MAX_PACE = 6;
/** Duration of the measurement on the reference machine, in ms. */
const REFERENCE_MS = 330;

const paceFactor = Math.min(MAX_PACE, Math.max(1, Number(process.env[PACE_VARIABLE] ?? 1) || 1));

/** Scales a timeout in ms for this machine. */
export const scaleTimeout = (ms: number): number => Math.ceil(ms * paceFactor);

/**
 * Measures how much longer than the reference machine this machine needs for a fixed amount of work; at least 1. Uses all cores in parallel,
 * so that a CPU quota is included.
 */
export const measurePace = async (): Promise<number> => {
  const workers = Array.from(
    { length: Math.min(2, availableParallelism()) },
    () => new Worker(new URL("./pace-worker.ts", import.meta.url)),
  );
  const durations = workers.map(
    (worker) => new Promise<number>((resolve) => (worker.onmessage = ({ data }) => resolve(data))),
  );
  for (const worker of workers) worker.postMessage("measure");
  const times = await Promise.all(durations);
  for (const worker of workers) worker.terminate();
  const coreFactor = availableParallelism() === 1 ? 2 : 1;
  return Math.min(MAX_PACE, Math.max(1, (Math.max(...times) * coreFactor) / REFERENCE_MS));
};
