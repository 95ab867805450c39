// Starts a real daemon with its own home folder, which connects to the test's server.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "#base/clock.ts";
import { runDaemon } from "#src/daemon/daemon.ts";
import { noteFolder } from "#test/support/run/ledger.ts";

/** Creates an empty folder that is removed when disposed. */
export const tempFolder = (): { path: string } & Disposable => {
  const path = mkdtempSync(join(tmpdir(), "slipway-daemon-"));
  noteFolder(path);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
};

export type RunningDaemon = AsyncDisposable & {
  readonly home: string;
  /** Stops the daemon like a signal does; resolves when it has ended. */
  stop(): Promise<void>;
};

export const TOKEN = "11111111-2222-4333-8444-555555555555";

type DaemonStart = {
  url: URL;
  /** The agent's token; TOKEN by default. */
  token?: string;
  clock?: Clock;
  env?: Record<string, string>;
};

export const startDaemon = (options: DaemonStart): RunningDaemon => {
  const folder = tempFolder();
  const stopping = new AbortController();
  const running = runDaemon({
    url: options.url,
    token: options.token ?? TOKEN,
    signal: stopping.signal,
    clock: options.clock ?? systemClock,
    env: { PATH: process.env.PATH, HOME: folder.path, ...options.env },
    random: () => 0,
  });
  const stop = (): Promise<void> => {
    stopping.abort();
    return running;
  };
  return {
    home: folder.path,
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      folder[Symbol.dispose]();
    },
  };
};

/** Returns true if the process is alive and not a zombie. */
export const isAlive = (pid: number): boolean => {
  try {
    if (existsSync("/proc/self/stat")) return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
