// Setups for readers that stop reading: the server that they call, and the processes whose memory is measured. This file has one server;
// cluster/server-readers.ts has a spare of a cluster.
import { residentMiB } from "#test/bench/machine.ts";
import { ServerSlot } from "./server.ts";
import { signInAdmin, type World } from "./server-world.ts";

export type Stage = AsyncDisposable & {
  /** Its clients call the same server as the readers that stop reading. */
  readonly world: World;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  /** Stops all servers properly. */
  stop(): Promise<void>;
};

/**
 * Maximum memory growth in MiB, regardless of the number of readers and the amount of data: memory that the runtime has not freed yet. It
 * rises to 90 and falls to 10 repeatedly during downloads on a busy machine.
 */
const MAX_GROWTH_MIB = 128;
const SAMPLE_INTERVAL_MS = 20;

/** Starts one server on a new data directory. */
export const startOneServer = async (): Promise<Stage> => {
  const place = await ServerSlot.make();
  const server = await place.start();
  return {
    world: await signInAdmin(place),
    processes: [{ name: "memory", pid: server.child.pid }],
    stop: () => place.stop(),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
};

/** Describes the maximum memory growth of each process in MiB while `work` ran, and the processes that exceeded the limit. */
export const measureGrowth = async (
  { processes }: Stage,
  work: () => Promise<unknown>,
): Promise<{ summary: string; problems: string[] }> => {
  const measured = processes.map(({ name, pid }) => ({ name, pid, before: residentMiB(pid), peak: 0 }));
  const samplePeaks = (): void => {
    for (const process of measured) process.peak = Math.max(process.peak, residentMiB(process.pid) - process.before);
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
    problems: measured.flatMap(({ name, peak }) =>
      peak > MAX_GROWTH_MIB ? [`${name} grew by ${peak.toFixed(0)} MiB`] : [],
    ),
  };
};
