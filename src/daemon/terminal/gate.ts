// Pauses the output of a terminal's programs with the system's flow control: writes to a paused terminal block, and nothing is lost (rule
// TM-6). Bun always reads from a terminal and cannot pause it.
import { dlopen } from "bun:ffi";
import { closeSync, constants, openSync, readdirSync, readlinkSync } from "node:fs";
import { log } from "#base/log.ts";

/** Arguments of `tcflow` (POSIX; Linux's values). */
const SUSPEND = 0;
const RESUME = 1;

export interface OutputGate {
  hold(): void;
  release(): void;
}

/** Runs `spawn` and also returns a gate for the terminal that `spawn` opened; the gate is undefined if output cannot be paused. */
export const spawnWithGate = <T>(spawn: () => T): { spawned: T; gate: OutputGate | undefined } => {
  const before = new Set(listOpenTerminals());
  const spawned = spawn();
  const [device] = listOpenTerminals().filter((one) => !before.has(one));
  const flow = device === undefined ? undefined : loadTcFlow();
  if (device === undefined || flow === undefined) return { spawned, gate: undefined };
  const setFlow = (action: number): void => {
    try {
      const file = openSync(device, constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
      try {
        flow(file, action);
      } finally {
        closeSync(file);
      }
    } catch (error) {
      // The terminal's last program has ended.
      log("daemon").debug("the output of a terminal cannot be paused: {error}", { error });
    }
  };
  return { spawned, gate: { hold: () => setFlow(SUSPEND), release: () => setFlow(RESUME) } };
};

/**
 * Returns the terminals that this process has open, as in `/dev/pts/3`; none without /proc. Includes a new terminal, which Bun keeps open
 * while it spawns the program.
 */
const listOpenTerminals = (): string[] => {
  try {
    return readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        const path = readlinkSync(`/proc/self/fd/${fd}`);
        return path.startsWith("/dev/pts/") ? [path] : [];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
};

type TcFlow = (file: number, action: number) => number;

let cachedLibrary: { flow: TcFlow | undefined } | undefined;

const loadTcFlow = (): TcFlow | undefined => {
  cachedLibrary ??= { flow: process.platform === "linux" ? load() : undefined };
  return cachedLibrary.flow;
};

const load = (): TcFlow | undefined => {
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "x64" ? "x86_64" : "aarch64"}.so.1`]) {
    try {
      return dlopen(name, { tcflow: { args: ["i32", "i32"], returns: "i32" } }).symbols.tcflow;
    } catch {
      // A different C library.
    }
  }
  log("daemon").warn(
    "the output of terminals cannot be paused on this system: clients that are too slow are detached instead",
  );
  return undefined;
};
