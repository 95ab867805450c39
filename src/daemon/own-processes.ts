// Which processes of a machine belong to an agent: those that carry its id, which all that its daemon starts inherits, and what they have
// started. Reads /proc; where there is none no process is found.
import { readdirSync, readFileSync } from "node:fs";
import { AGENT_MARK } from "./environment.ts";

const MARK = new RegExp(`(?:^|\\0)${AGENT_MARK}=([^\\0]*)`);
/** Deeper than any tree of processes that people start. */
const MAX_DEPTH = 64;

/** What `look` finds; `otherwise` where it throws: processes come and go while they are looked at. */
export const quietly = <T>(look: () => T, otherwise: T): T => {
  try {
    return look();
  } catch {
    return otherwise;
  }
};
/** Returns the text of a file of /proc, empty where it cannot be read. */
export const readProc = (file: string): string => quietly(() => readFileSync(file, "latin1"), "");

/** Returns the agent whose daemon has started the process; undefined for one of no agent, and of another user. */
export const findAgent = (pid: number): string | undefined => MARK.exec(readProc(`/proc/${pid}/environ`))?.[1];

/** The fields of /proc/PID/stat behind the name, which is in brackets and may hold anything: the first is the state. */
const statOf = (pid: number): string[] => {
  const stat = readProc(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
};

/** Returns whether `ancestor` has started the process, or one that did: a program may have emptied its environment. */
export const isBelow = (pid: number, ancestor: number): boolean => {
  for (let at = pid, depth = 0; at > 1 && depth < MAX_DEPTH; depth++) {
    if (at === ancestor) return true;
    at = Number(statOf(at)[1] ?? 0);
  }
  return false;
};

/** Linux counts processor time in hundredths of a second for programs, whatever the kernel's own clock is. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/** Memory of a process of its own, without files that are mapped: those are shared with the rest of the machine. */
export const readResident = (pid: number): number => {
  const [, resident = 0, shared = 0] = readProc(`/proc/${pid}/statm`).split(" ").map(Number);
  return (resident - shared) * PAGE_BYTES;
};

export type OwnUse = {
  /** Processor time of all processes that live, by process, in ms. */
  readonly cpu_ms: ReadonlyMap<number, number>;
  /** Memory of their own, without files that are mapped. */
  readonly memory_bytes: number;
};

/** What the processes of the agent use now; undefined where none can be seen. */
export const readOwnUse = (agent_id: string): OwnUse | undefined => {
  const cpu_ms = new Map<number, number>();
  let memory_bytes = 0;
  for (const name of quietly(() => readdirSync("/proc"), [])) {
    if (!/^\d+$/.test(name) || findAgent(Number(name)) !== agent_id) continue;
    const pid = Number(name);
    const fields = statOf(pid);
    cpu_ms.set(pid, (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS);
    memory_bytes += readResident(pid);
  }
  return cpu_ms.size > 0 ? { cpu_ms, memory_bytes } : undefined;
};

export type Process = {
  readonly pid: number;
  readonly group: number;
  /** Processor time of its own and of its children that have ended, in ms. */
  readonly cpu_ms: number;
  /** Read and written since it began, files and connections alike, with its children that have ended. */
  readonly moved_bytes: number;
  readonly argv: readonly string[];
};

/** Returns the processes of the agent other than its daemon, by what they are and have used. */
export const readProcesses = (agent_id: string): Process[] =>
  quietly(() => readdirSync("/proc"), [])
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid && findAgent(Number(name)) === agent_id)
    .map((name) => {
      const fields = statOf(Number(name));
      // utime, stime, and the same of children that were waited for: what a build starts for a moment is in them.
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at] ?? 0), 0);
      const argv = readProc(`/proc/${name}/cmdline`)
        .split("\0")
        .filter((word) => word !== "");
      const [, read = 0, written = 0] = (/^rchar: (\d+)\nwchar: (\d+)$/m.exec(readProc(`/proc/${name}/io`)) ?? []).map(
        Number,
      );
      const moved_bytes = read + written;
      return { pid: Number(name), group: Number(fields[2] ?? 0), cpu_ms: ticks * TICK_MS, moved_bytes, argv };
    });
