// Pauses all processes of a local workspace briefly, so that its files can be copied consistently. A small shell script pauses them and
// resumes them when its input ends, which also happens if the server is killed.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { ProvisionError } from "../provisioner.ts";
import { findProcessesAtHome, isAlive, isStopped, type ProcessMark } from "./process-table.ts";

const STOP_SCRIPT =
  'while read -r p; do all="$all $p"; kill -STOP "$p" 2>/dev/null; echo "$p"; done; for p in $all; do kill -CONT "$p" 2>/dev/null; done';
/** Maximum number of scans. They are repeated until one finds no new process, because a process may start another just before it stops. */
const MAX_ROUNDS = 100;
const POLL_MS = 2;
/** A process that does not stop within this time waits for its vfork child, which was stopped before its exec. It cannot stop at all. */
const STOP_TIMEOUT_MS = 300;
/** Maximum number of attempts. Between two attempts, all processes are resumed. */
const MAX_ATTEMPTS = 20;
const RETRY_DELAY_MS = 20;

export type FrozenHome = {
  /** Resumes all processes. May be called more than once. */
  thaw(): Promise<void>;
};

/** Stops every process of the home. Processes that were already stopped are not resumed later. Throws ProvisionError. */
export const freeze = async (home: string, clock: Clock): Promise<FrozenHome> => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await freezeOnce(home, clock);
    } catch (error) {
      if (!(error instanceof StillRunningError) || attempt === MAX_ATTEMPTS) throw error;
      await pause(clock, RETRY_DELAY_MS);
    }
  }
};

class StillRunningError extends ProvisionError {}

const freezeOnce = async (home: string, clock: Clock): Promise<FrozenHome> => {
  if (findProcessesAtHome(home).length === 0) return { thaw: async () => {} };
  const shell = Bun.spawn(["/bin/sh", "-c", STOP_SCRIPT], {
    env: { PATH: "/usr/bin:/bin" },
    cwd: "/",
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
    // A signal to the server's process group must not kill the shell before it has resumed all processes.
    detached: true,
  });
  const stoppedLines = shell.stdout.getReader();
  const thaw = async (): Promise<void> => {
    await shell.stdin.end();
    await shell.exited;
  };
  const seen = new Map<number, string>();
  const isNew = ({ pid, started }: ProcessMark): boolean => seen.get(pid) !== started;
  try {
    for (let round = 0; ; round++) {
      const newProcesses = findProcessesAtHome(home).filter(isNew);
      if (newProcesses.length === 0) return { thaw };
      if (round === MAX_ROUNDS)
        throw new ProvisionError("The workspace starts processes faster than they can be paused.");
      for (const mark of newProcesses) seen.set(mark.pid, mark.started);
      const running = newProcesses.filter((mark) => !isStopped(mark));
      if (running.length === 0) continue;
      shell.stdin.write(running.map(({ pid }) => `${pid}\n`).join(""));
      await shell.stdin.flush();
      await waitForLines(stoppedLines, running.length);
      await waitUntilStopped(running, clock);
    }
  } catch (error) {
    await thaw();
    throw error;
  }
};

/** Waits until the shell has printed this many lines, one for each stopped process. */
const waitForLines = async (
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  count: number,
): Promise<void> => {
  for (let remaining = count; remaining > 0; ) {
    const { done, value } = await reader.read();
    if (done) throw new ProvisionError("The workspace's processes cannot be paused.");
    for (const byte of value ?? []) if (byte === 10) remaining -= 1;
  }
};

/** Waits until the processes have stopped, because a signal takes effect only when a process returns from its system call. */
const waitUntilStopped = async (marks: readonly ProcessMark[], clock: Clock): Promise<void> => {
  const deadlineMs = clock.monotonic() + STOP_TIMEOUT_MS;
  while (marks.some((mark) => isAlive(mark) && !isStopped(mark))) {
    if (clock.monotonic() > deadlineMs)
      throw new StillRunningError("A process of the workspace does not react to being paused.");
    await pause(clock, POLL_MS);
  }
};
