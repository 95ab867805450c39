// Setups for readers that stop reading: the server they call, and the processes whose memory is measured. One server here; behind a spare
// of a cluster in cluster/server-readers.ts.
import { residentMiB } from "#test/bench/machine.ts";
import { ServerPlace } from "./server.ts";
import { signInAdmin, type World } from "./server-world.ts";

export type Stage = AsyncDisposable & {
  /** Its clients call the same server as the readers that stop. */
  readonly world: World;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  /** Stops all servers properly. */
  stop(): Promise<void>;
};

/**
 * Maximum memory growth in MiB, regardless of the number of readers and the data sent: what the runtime has not freed yet. During twenty
 * downloads of 2 GiB in a row on a busy machine, it went up to 90 and back to 10 again and again.
 */
const BOUND = 128;
const SAMPLE_INTERVAL_MS = 20;

/** One server on its own data directory. */
export const startOneServer = async (): Promise<Stage> => {
  const place = await ServerPlace.make();
  const server = await place.start();
  return {
    world: await signInAdmin(place),
    processes: [{ name: "memory", pid: server.child.pid }],
    stop: () => place.stop(),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
};

/** Describes each process's maximum memory growth in MiB while `work` ran, and which ones exceeded the limit. */
export const measureGrowth = async (
  { processes }: Stage,
  work: () => Promise<unknown>,
): Promise<{ summary: string; problems: string[] }> => {
  const measured = processes.map(({ name, pid }) => ({ name, pid, before: residentMiB(pid), peak: 0 }));
  const samplePeaks = (): void => {
    for (const one of measured) one.peak = Math.max(one.peak, residentMiB(one.pid) - one.before);
  };
  const sampling = setInterval(samplePeaks, SAMPLE_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(sampling);
  }
  samplePeaks();
  return {
    summary: measured.map(({ name, peak }) => `${name} +${peak.toFixed(0)} MiB`).join(", "),
    problems: measured.flatMap(({ name, peak }) => (peak > BOUND ? [`${name} grew by ${peak.toFixed(0)} MiB`] : [])),
  };
};
