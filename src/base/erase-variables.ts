// Erases variables from the process environment that the system exposes. On Linux, /proc/<pid>/environ is the memory in which the process
// received its variables, and every program of the same user can read it; deleting a variable from `process.env` does not change it.
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

/** Field numbers in /proc/<pid>/stat, counted from 1 (proc_pid_stat(5)). */
const ENV_START = 50;
const ENV_END = 51;
/** The first field after the name in parentheses. */
const FIRST_FIELD = 3;

/**
 * Overwrites these variables with zeros, name and value, in the memory of this process. Takes less than a millisecond. Returns false where
 * the system does not allow it or has no such memory (systems other than Linux).
 */
export const eraseVariables = (names: readonly string[]): boolean => {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [start, end] = [Number(fields[ENV_START - FIRST_FIELD]), Number(fields[ENV_END - FIRST_FIELD])];
    if (!(start > 0 && end > start)) return false;
    const memory = openSync("/proc/self/mem", "r+");
    try {
      const block = Buffer.alloc(end - start);
      if (readSync(memory, block, 0, block.length, start) !== block.length) return false;
      let offset = 0;
      for (const entry of block.toString("latin1").split("\0")) {
        const name = entry.slice(0, Math.max(0, entry.indexOf("=")));
        if (names.includes(name)) writeSync(memory, Buffer.alloc(entry.length), 0, entry.length, start + offset);
        offset += entry.length + 1;
      }
      return true;
    } finally {
      closeSync(memory);
    }
  } catch {
    return false;
  }
};
