// Detects the active jobs of a workspace: process groups that used the CPU or moved data since the last check, such as a build in a
// terminal, a download, or a program that an agent started. An idle editor or shell is not a job. Reads /proc; finds no jobs without it.
import { basename } from "node:path";
import type { Job } from "#src/wire/index.ts";
import { type Process, readProcesses } from "./own-processes.ts";

/** A group is active if it uses at least this share of a CPU. An idle editor with its language servers uses much less. */
const MIN_LOAD = 0.05;
/**
 * A group is also active at this read and write rate, because a download or a copy uses little CPU. An idle editor with its connections
 * stays below this rate.
 */
const MIN_BYTES_PER_SECOND = 64 * 1024;

type Usage = { readonly cpu_ms: number; readonly moved_bytes: number };

export class Jobs {
  readonly #read: () => readonly Process[];
  #before: ReadonlyMap<number, Usage> | undefined;

  /** `read` returns the processes of the agent except its daemon. */
  constructor(agent_id: string, read = () => readProcesses(agent_id)) {
    this.#read = read;
  }

  /**
   * Returns the jobs that were active since the last call, busiest first; none for the first call. `elapsed_ms`: the time since the last
   * call.
   */
  takeActive(elapsed_ms: number): Job[] {
    const groups = new Map<number, Process[]>();
    for (const one of this.#read()) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
    const usage = new Map([...groups].map(([group, processes]) => [group, sumUsage(processes)]));
    const before = this.#before;
    this.#before = usage;
    if (!before || elapsed_ms <= 0) return [];
    return [...groups]
      .map(([group, all]) => ({
        command: formatCommand(findLeader(group, all).argv),
        load: computeLoad(usage.get(group) ?? ZERO_USAGE, before.get(group) ?? ZERO_USAGE, elapsed_ms),
      }))
      .filter(({ command, load }) => command !== "" && load >= MIN_LOAD)
      .sort((a, b) => b.load - a.load);
  }
}

const ZERO_USAGE: Usage = { cpu_ms: 0, moved_bytes: 0 };

const sumUsage = (processes: readonly Usage[]): Usage =>
  processes.reduce(
    (sum, { cpu_ms, moved_bytes }) => ({ cpu_ms: sum.cpu_ms + cpu_ms, moved_bytes: sum.moved_bytes + moved_bytes }),
    ZERO_USAGE,
  );

/** Returns the CPU share of a group. For a group that moves enough data, returns at least the share of an active group. */
const computeLoad = (current: Usage, before: Usage, elapsed_ms: number): number => {
  const load = (current.cpu_ms - before.cpu_ms) / elapsed_ms;
  const isMoving = (current.moved_bytes - before.moved_bytes) * 1_000 >= MIN_BYTES_PER_SECOND * elapsed_ms;
  return isMoving ? Math.max(load, MIN_LOAD) : load;
};

const findLeader = (group: number, processes: readonly Process[]): Process =>
  processes.find(({ pid }) => pid === group) ?? (processes.toSorted((a, b) => b.cpu_ms - a.cpu_ms)[0] as Process);

const MAX_WORDS = 3;

/**
 * Returns a short description of a command. Contains only words that look like program names and subcommands: arguments may contain
 * secrets, and the description is stored and shown to everyone who can see the workspace.
 */
export const formatCommand = (argv: readonly string[]): string => {
  // Some programs put their status into their first argument as a single text.
  const [program = "", ...args] = argv.length === 1 ? (argv[0] ?? "").split(" ") : argv;
  const name = basename(program).replace(/^-/, "");
  if (!/^[\w.+:@-]{1,40}$/.test(name)) return "";
  const words = [name];
  for (const word of args) {
    const lastPart = /^[\w./-]+$/.test(word) ? basename(word) : "";
    if (words.length === MAX_WORDS || !/^[a-z][a-z_.:-]{0,23}$/.test(lastPart)) break;
    words.push(lastPart);
  }
  return words.join(" ");
};
