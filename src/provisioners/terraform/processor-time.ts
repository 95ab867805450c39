// How much of the processor's time a group of processes has used, as Linux counts it.
import { readdirSync, readFileSync } from "node:fs";

/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const TICK_MS = 10;
/** Of /proc/PID/stat behind the name: the group, and the time of the process and of its children that have ended. */
const GROUP = 2;
const TIMES = [11, 12, 13, 14];

/** Returns milliseconds; undefined where the system does not tell. */
export const processorMsOfGroup = (group: number): number | undefined => {
  if (process.platform !== "linux") return undefined;
  let ticks = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const fields = readStat(name);
    if (Number(fields[GROUP]) === group) for (const at of TIMES) ticks += Number(fields[at] ?? 0);
  }
  return ticks * TICK_MS;
};

/** Empty for a process that has ended in the meantime. */
const readStat = (pid: string): string[] => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
};
