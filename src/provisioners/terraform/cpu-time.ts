// Measures the CPU time of a process group on Linux.
import { readdirSync, readFileSync } from "node:fs";

/** Linux reports hundredths of a second, regardless of the kernel's clock rate. */
const TICK_MS = 10;
/** Fields of /proc/PID/stat after the name: the group, and the CPU time of the process and its ended children. */
const GROUP_FIELD = 2;
const TIME_FIELDS = [11, 12, 13, 14];

/** Returns the CPU time of a process group in milliseconds; undefined if the system does not report it. */
export const readGroupCpuMs = (group: number): number | undefined => {
  if (process.platform !== "linux") return undefined;
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const fields = readStat(name);
    if (Number(fields[GROUP_FIELD]) === group) for (const field of TIME_FIELDS) ticks += Number(fields[field] ?? 0);
  }
  return ticks * TICK_MS;
};

/** Returns an empty list if the process has ended. */
const readStat = (pid: string): string[] => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
};
