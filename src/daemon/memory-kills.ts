// Detects processes that the kernel has killed because memory ran out. Counts come from the workspace's control group (both versions), or
// from the machine if the workspace has no limit. The kernel names processes only in its log, which few workspaces can read, so the largest
// processes are recorded while memory is scarce. Linux only; elsewhere nothing is found.
import { closeSync, constants, openSync, readSync } from "node:fs";
import { formatCommand } from "./jobs.ts";
import { type Process, readProc, readProcesses, readResident, tryOr } from "./own-processes.ts";

export type Memory = { readonly used: number; readonly total: number };

/** The kernel's current values. */
export type MemoryReading = {
  readonly memory: Memory | undefined;
  /** True if the limit applies to this workspace only, so that every killed process belongs to it. */
  readonly isOwn: boolean;
  /** Number of processes killed so far. */
  readonly kills: number;
};

/**
 * Processes are recorded when memory use reaches this share of the workspace's own limit. On a whole machine, which has many more
 * processes, the higher share below applies.
 */
const SCARCE_SHARE = 0.5;
const MACHINE_SCARCE_SHARE = 0.9;
/** Version 1 represents "no limit" as a huge number. */
const UNLIMITED_BYTES = 2 ** 60;
/** Maximum number of kills reported per check. */
const MAX_KILLS = 5;

type KnownProcess = { readonly pid: number; readonly name: string; readonly bytes: number };

export type MemoryKillsOptions = {
  readonly agent_id: string;
  readonly read?: () => MemoryReading | undefined;
  readonly processes?: () => readonly Process[];
  readonly resident?: (pid: number) => number;
  readonly log?: () => readonly number[];
};

export class MemoryKills {
  readonly #options: Required<MemoryKillsOptions>;
  #kills: number | undefined;
  #recorded: readonly KnownProcess[] = [];
  #memory: Memory | undefined;

  constructor({
    agent_id,
    read = readMemory,
    processes = () => readProcesses(agent_id),
    resident = readResident,
    log = readKernelLog,
  }: MemoryKillsOptions) {
    this.#options = { agent_id, read, processes, resident, log };
  }

  /** Memory at the last check; undefined if the kernel does not report it. */
  get memory(): Memory | undefined {
    return this.#memory;
  }

  /**
   * Returns the names of processes killed since the last call, at most five. The name of a process that was never seen is empty. The first
   * call returns an empty list.
   */
  takeKilled(): string[] {
    const { read, processes, resident, log } = this.#options;
    const reading = read();
    this.#memory = reading?.memory;
    if (!reading) return [];
    const { memory, isOwn, kills } = reading;
    const killCount = this.#kills === undefined ? 0 : Math.max(0, kills - this.#kills);
    this.#kills = kills;
    const isScarce =
      memory !== undefined && memory.used >= (isOwn ? SCARCE_SHARE : MACHINE_SCARCE_SHARE) * memory.total;
    if (killCount === 0 && !isScarce) {
      this.#recorded = [];
      return [];
    }
    const before = this.#recorded;
    const current = processes();
    this.#recorded = current.map(({ pid, argv }) => ({ pid, name: formatCommand(argv), bytes: resident(pid) }));
    if (killCount === 0) return [];
    const alive = new Set(current.filter(({ argv }) => argv.length > 0).map(({ pid }) => pid));
    const endedProcesses = before.filter(({ pid }) => !alive.has(pid)).sort((a, b) => b.bytes - a.bytes);
    if (isOwn) return Array.from({ length: Math.min(killCount, MAX_KILLS) }, (_, n) => endedProcesses[n]?.name ?? "");
    // The killed process may belong to another workspace on the machine.
    const loggedPids = new Set(log());
    return endedProcesses
      .filter(({ pid }) => loggedPids.size === 0 || loggedPids.has(pid))
      .slice(0, Math.min(killCount, MAX_KILLS))
      .map(({ name }) => name);
  }
}

/** Returns the values of the control group, or of the machine if the group has no limit; undefined if the kernel reports none. */
export const readMemory = (read: (file: string) => string = readProc): MemoryReading | undefined => {
  const groups = read("/proc/self/cgroup");
  const [, groupV2] = /^0::(\/.*)$/m.exec(groups) ?? [];
  const [, groupV1] = /^\d+:(?:[^:\n]*,)?memory(?:,[^:\n]*)?:(\/.*)$/m.exec(groups) ?? [];
  const folders = [
    ...(groupV1 === undefined ? [] : [`/sys/fs/cgroup/memory${groupV1}`, "/sys/fs/cgroup/memory"]),
    ...(groupV2 === undefined ? [] : [`/sys/fs/cgroup${groupV2}`, "/sys/fs/cgroup"]),
  ];
  for (const path of folders) {
    const folder = path.replace(/\/$/, "");
    const events = read(`${folder}/memory.events`) || read(`${folder}/memory.oom_control`);
    const killCount = parseNumberAfter("oom_kill", events);
    if (killCount === undefined) continue;
    const total = toLimit(read(`${folder}/memory.max`) || read(`${folder}/memory.limit_in_bytes`));
    const usedBytes = Number(read(`${folder}/memory.current`) || read(`${folder}/memory.usage_in_bytes`));
    const stat = read(`${folder}/memory.stat`);
    const cacheBytes = parseNumberAfter("total_inactive_file", stat) ?? parseNumberAfter("inactive_file", stat) ?? 0;
    // The page cache is reclaimable, so it does not count as used.
    if (total !== undefined)
      return { memory: { used: Math.max(0, usedBytes - cacheBytes), total }, isOwn: true, kills: killCount };
    return { memory: readMachineMemory(read), isOwn: false, kills: killCount };
  }
  return undefined;
};

const parseNumberAfter = (word: string, text: string): number | undefined => {
  const [, number] = new RegExp(`^${word} (\\d+)$`, "m").exec(text) ?? [];
  return number === undefined ? undefined : Number(number);
};

const toLimit = (text: string): number | undefined => {
  const limit = Number(text.trim() || Number.NaN);
  return limit > 0 && limit < UNLIMITED_BYTES ? limit : undefined;
};

const KIB = 1024;

const readMachineMemory = (read: (file: string) => string): Memory | undefined => {
  const text = read("/proc/meminfo");
  const [total, availableKib] = ["MemTotal", "MemAvailable"].map((word) =>
    Number(new RegExp(`^${word}:\\s+(\\d+) kB$`, "m").exec(text)?.[1]),
  );
  if (!total || availableKib === undefined || Number.isNaN(availableKib)) return undefined;
  return { used: (total - availableKib) * KIB, total: total * KIB };
};

const RECORD_BYTES = 8192;
const MAX_RECORDS = 20_000;

/** Returns the processes that the kernel's log reports as killed for memory; none if this user cannot read it, as in most containers. */
export const readKernelLog = (): number[] =>
  tryOr(() => {
    const file = openSync("/dev/kmsg", constants.O_RDONLY | constants.O_NONBLOCK);
    const record = Buffer.alloc(RECORD_BYTES);
    const pids: number[] = [];
    // The end of the log is reported as an error: reading on would block.
    const readRecord = (): number => tryOr(() => readSync(file, record), 0);
    for (let read = readRecord(), count = 0; read > 0 && count < MAX_RECORDS; read = readRecord(), count++) {
      const [, pid] = / Killed process (\d+) \(/.exec(record.toString("latin1", 0, read)) ?? [];
      if (pid !== undefined) pids.push(Number(pid));
    }
    closeSync(file);
    return pids;
  }, []);
