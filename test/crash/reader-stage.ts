// Where readers stop reading: whom they ask, and the processes whose memory is looked at in the meantime. One server here; behind a spare of a cluster
// in cluster/server-readers.ts.
import { residentMiB } from "#test/bench/machine.ts";
import { ServerPlace } from "./server.ts";
import { enter, type World } from "./server-world.ts";

export type Stage = AsyncDisposable & {
  /** Its clients ask whom those who stop reading ask, too. */
  readonly world: World;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  /** Ends all servers in an orderly way. */
  stop(): Promise<void>;
};

/** MiB that memory may grow by, whatever the number of readers and whatever was sent: what the runtime has not given back yet. */
const BOUND = 100;
const LOOK_MS = 20;

/** One server on a data directory of its own. */
export const oneServer = async (): Promise<Stage> => {
  const place = await ServerPlace.make();
  const server = await place.start();
  return {
    world: await enter(place),
    processes: [{ name: "memory", pid: server.child.pid }],
    stop: () => place.stop(),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
};

/** By how many MiB each process grew at most while `work` ran, in words, and which of them by too much. */
export const growthDuring = async (
  { processes }: Stage,
  work: () => Promise<unknown>,
): Promise<{ said: string; wrong: string[] }> => {
  const seen = processes.map(({ name, pid }) => ({ name, pid, before: residentMiB(pid), peak: 0 }));
  const look = (): void => {
    for (const one of seen) one.peak = Math.max(one.peak, residentMiB(one.pid) - one.before);
  };
  const looking = setInterval(look, LOOK_MS);
  try {
    await work();
  } finally {
    clearInterval(looking);
  }
  look();
  return {
    said: seen.map(({ name, peak }) => `${name} +${peak.toFixed(0)} MiB`).join(", "),
    wrong: seen.flatMap(({ name, peak }) => (peak > BOUND ? [`${name} grew by ${peak.toFixed(0)} MiB`] : [])),
  };
};
