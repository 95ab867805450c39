// Detects which jobs of a workspace are active: process groups that used the CPU or moved data since the last check, such as a build in a terminal, a
// download, or a program that an agent started. An idle editor or shell is not a job. Reads /proc; finds no jobs without it.
import { basename } from "node:path";
import type { Job } from "#src/wire/index.ts";
import { type Process, readProcesses } from "./own-processes.ts";

/** A group is active from this CPU share on. An idle editor with its language servers stays well below. */
const MIN_LOAD = 0.05;
/** Or from this read and write rate on: a download or a copy uses little CPU. An idle editor with its connections stays below. */
const MIN_BYTES_PER_SECOND = 64 * 1024;

type Use = { readonly cpu_ms: number; readonly moved_bytes: number };

export class Jobs {
  readonly #read: () => readonly Process[];
  #before: ReadonlyMap<number, Use> | undefined;

  /** `read` returns the processes of the agent except its daemon. */
  constructor(agent_id: string, read = () => readProcesses(agent_id)) {
    this.#read = read;
  }

  /** Returns the jobs that were active since the last call, busiest first; none for the first call. `elapsed_ms` is the time since that call. */
  takeActive(elapsed_ms: number): Job[] {
    const groups = new Map<number, Process[]>();
    for (const one of this.#read()) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
    const used = new Map([...groups].map(([group, all]) => [group, sumUse(all)]));
    const before = this.#before;
    this.#before = used;
    if (!before || elapsed_ms <= 0) return [];
    return [...groups]
      .map(([group, all]) => ({
        command: formatCommand(findLeader(group, all).argv),
        load: computeLoad(used.get(group) ?? ZERO_USE, before.get(group) ?? ZERO_USE, elapsed_ms),
      }))
      .filter(({ command, load }) => command !== "" && load >= MIN_LOAD)
      .sort((a, b) => b.load - a.load);
  }
}

const ZERO_USE: Use = { cpu_ms: 0, moved_bytes: 0 };

const sumUse = (all: readonly Use[]): Use =>
  all.reduce(
    (sum, { cpu_ms, moved_bytes }) => ({ cpu_ms: sum.cpu_ms + cpu_ms, moved_bytes: sum.moved_bytes + moved_bytes }),
    ZERO_USE,
  );

/** The CPU share of a group. A group that moves data is active, regardless of its CPU share. */
const computeLoad = (now: Use, before: Use, elapsed_ms: number): number => {
  const load = (now.cpu_ms - before.cpu_ms) / elapsed_ms;
  const isMoving = (now.moved_bytes - before.moved_bytes) * 1_000 >= MIN_BYTES_PER_SECOND * elapsed_ms;
  return isMoving ? Math.max(load, MIN_LOAD) : load;
};

const findLeader = (group: number, all: readonly Process[]): Process =>
  all.find(({ pid }) => pid === group) ?? (all.toSorted((a, b) => b.cpu_ms - a.cpu_ms)[0] as Process);

const MAX_WORDS = 3;

/**
 * Returns a short description of a command. Only words that look like program names and subcommands: arguments may contain secrets, and this is
 * stored and shown to everyone who can see the workspace.
 */
export const formatCommand = (argv: readonly string[]): string => {
  // Some programs put their status into their first argument as a single text.
  const [program = "", ...rest] = argv.length === 1 ? (argv[0] ?? "").split(" ") : argv;
  const name = basename(program).replace(/^-/, "");
  if (!/^[\w.+:@-]{1,40}$/.test(name)) return "";
  const words = [name];
  for (const word of rest) {
    const plain = /^[\w./-]+$/.test(word) ? basename(word) : "";
    if (words.length === MAX_WORDS || !/^[a-z][a-z_.:-]{0,23}$/.test(plain)) break;
    words.push(plain);
  }
  return words.join(" ");
};
