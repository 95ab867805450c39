// Finds the processes of an agent. The daemon passes the agent's ID in the environment of every program that it starts, and their child
// processes inherit it. Reads /proc; without it, no process is found.
import { readdirSync, readFileSync } from "node:fs";
import { AGENT_ID_VARIABLE } from "./environment.ts";

const AGENT_ID_PATTERN = new RegExp(`(?:^|\\0)${AGENT_ID_VARIABLE}=([^\\0]*)`);
/** Deeper than any real process tree. */
const MAX_DEPTH = 64;

/** Returns the result of `read`, or `otherwise` if it throws: processes may end while they are inspected. */
export const tryOr = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise;
  }
};

/** Returns the text of a file of /proc; empty if it cannot be read. */
export const readProc = (file: string): string => tryOr(() => readFileSync(file, "latin1"), "");

/** Returns the agent whose daemon started the process; undefined if none exists, or if the process belongs to another user. */
export const findAgent = (pid: number): string | undefined =>
  AGENT_ID_PATTERN.exec(readProc(`/proc/${pid}/environ`))?.[1];

/** Returns the fields of /proc/PID/stat after the name, which is in parentheses and may contain anything. The first is the state. */
export const readStatFields = (pid: number): string[] => {
  const stat = readProc(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
};

/** Returns all processes of this machine; undefined without /proc. */
export const listProcessIds = (): number[] | undefined =>
  tryOr(() => readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])), undefined);

/** Returns true if `ancestor` is an ancestor of the process, even if the program has cleared its environment. */
export const isBelow = (pid: number, ancestor: number): boolean => {
  for (let current = pid, depth = 0; current > 1 && depth < MAX_DEPTH; depth++) {
    if (current === ancestor) return true;
    current = Number(readStatFields(current)[1] ?? 0);
  }
  return false;
};

/** Linux reports CPU time to programs in hundredths of a second, regardless of the kernel's clock rate. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/** Returns a process's private memory, without mapped files, which the machine shares. */
export const readResident = (pid: number): number => {
  const [, resident = 0, shared = 0] = readProc(`/proc/${pid}/statm`).split(" ").map(Number);
  return (resident - shared) * PAGE_BYTES;
};

export type OwnUse = {
  /** CPU time of all living processes in ms, by process. */
  readonly cpu_ms: ReadonlyMap<number, number>;
  /** Private memory, without mapped files. */
  readonly memory_bytes: number;
};

/** Returns the current usage of the agent's processes; undefined if none can be seen. */
export const readOwnUse = (agent_id: string): OwnUse | undefined => {
  const cpu_ms = new Map<number, number>();
  let memory_bytes = 0;
  for (const pid of listProcessIds() ?? []) {
    if (findAgent(pid) !== agent_id) continue;
    const fields = readStatFields(pid);
    cpu_ms.set(pid, (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_MS);
    memory_bytes += readResident(pid);
  }
  return cpu_ms.size > 0 ? { cpu_ms, memory_bytes } : undefined;
};

export type Process = {
  readonly pid: number;
  readonly group: number;
  /** CPU time of the process and its ended children, in ms. */
  readonly cpu_ms: number;
  /** Bytes that the process and its ended children have read and written, in files and connections. */
  readonly moved_bytes: number;
  readonly argv: readonly string[];
};

/** Returns the processes of the agent except its daemon, with their usage. */
export const readProcesses = (agent_id: string): Process[] =>
  (listProcessIds() ?? [])
    .filter((pid) => pid !== process.pid && findAgent(pid) === agent_id)
    .map((pid) => {
      const fields = readStatFields(pid);
      // utime, stime, cutime, cstime. The last two include the short-lived processes of a build.
      const ticks = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at] ?? 0), 0);
      const argv = readProc(`/proc/${pid}/cmdline`)
        .split("\0")
        .filter((word) => word !== "");
      const [, read = 0, written = 0] = (/^rchar: (\d+)\nwchar: (\d+)$/m.exec(readProc(`/proc/${pid}/io`)) ?? []).map(
        Number,
      );
      const moved_bytes = read + written;
      return { pid, group: Number(fields[2] ?? 0), cpu_ms: ticks * TICK_MS, moved_bytes, argv };
    });
