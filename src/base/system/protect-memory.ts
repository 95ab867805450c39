// Keeps other programs of the same user from reading this process's memory and environment.
import { loadSystemLibrary } from "./library.ts";

/** linux/prctl.h */
const SET_DUMPABLE = 4;

/**
 * Makes /proc/PID/mem, /proc/PID/environ and tracing of this process available to root only (prctl(2)). Programs that it starts are not
 * affected. Returns false on systems without it.
 */
export const protectMemory = (): boolean => {
  const library = loadSystemLibrary({ prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" } });
  return library?.prctl(SET_DUMPABLE, 0n, 0n, 0n, 0n) === 0;
};
