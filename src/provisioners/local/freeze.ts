// Lets everything that a local workspace runs stand still for a moment, so that its files can be copied as they are. A small shell does it
// and not the server: it lets everything go on when its input ends, which a server that is killed cannot help.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { ProvisionError } from "../provisioner.ts";
import { isAlive, isStopped, type ProcessMark, processesAtHome } from "./process-table.ts";

const KEEPER =
  'while read -r p; do all="$all $p"; kill -STOP "$p" 2>/dev/null; echo "$p"; done; for p in $all; do kill -CONT "$p" 2>/dev/null; done';
/** What is stopped may just have started another, so look until there is nothing new. */
const MAX_ROUNDS = 100;
const POLL_MS = 2;
/** What takes longer has met a child that was stopped between its vfork and its program: its parent waits for it and cannot be stopped. */
const STOP_TIMEOUT_MS = 300;
/** Then all go on, and it is tried again. */
const MAX_TRIES = 20;
const BETWEEN_TRIES_MS = 20;

export type Frozen = {
  /** Lets everything go on; more than one call does no harm. */
  thaw(): Promise<void>;
};

/** Stops every process of the home. Processes that stood still before do so afterwards. Throws ProvisionError. */
export const freeze = async (home: string, clock: Clock): Promise<Frozen> => {
  for (let tries = 1; ; tries++) {
    try {
      return await freezeOnce(home, clock);
    } catch (error) {
      if (!(error instanceof Unmoved) || tries === MAX_TRIES) throw error;
      await pause(clock, BETWEEN_TRIES_MS);
    }
  }
};

/** A process still runs. */
class Unmoved extends ProvisionError {}

const freezeOnce = async (home: string, clock: Clock): Promise<Frozen> => {
  if (processesAtHome(home).length === 0) return { thaw: async () => {} };
  const keeper = Bun.spawn(["/bin/sh", "-c", KEEPER], {
    env: { PATH: "/usr/bin:/bin" },
    cwd: "/",
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
    // What ends the server's process group must not end it before it has let everything go on.
    detached: true,
  });
  const answers = keeper.stdout.getReader();
  const thaw = async (): Promise<void> => {
    await keeper.stdin.end();
    await keeper.exited;
  };
  const seen = new Map<number, string>();
  const isNew = ({ pid, started }: ProcessMark): boolean => seen.get(pid) !== started;
  try {
    for (let round = 0; ; round++) {
      const found = processesAtHome(home).filter(isNew);
      if (found.length === 0) return { thaw };
      if (round === MAX_ROUNDS)
        throw new ProvisionError("The workspace starts processes faster than they can be paused.");
      for (const mark of found) seen.set(mark.pid, mark.started);
      const running = found.filter((mark) => !isStopped(mark));
      if (running.length === 0) continue;
      keeper.stdin.write(running.map(({ pid }) => `${pid}\n`).join(""));
      await keeper.stdin.flush();
      await linesOf(answers, running.length);
      await allStopped(running, clock);
    }
  } catch (error) {
    await thaw();
    throw error;
  }
};

/** Waits for so many lines. */
const linesOf = async (
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  count: number,
): Promise<void> => {
  for (let left = count; left > 0; ) {
    const { done, value } = await reader.read();
    if (done) throw new ProvisionError("The workspace's processes cannot be paused.");
    for (const byte of value ?? []) if (byte === 10) left -= 1;
  }
};

/** A signal takes effect when a process comes out of the system call that it is in. */
const allStopped = async (marks: readonly ProcessMark[], clock: Clock): Promise<void> => {
  const until = clock.monotonic() + STOP_TIMEOUT_MS;
  while (marks.some((mark) => isAlive(mark) && !isStopped(mark))) {
    if (clock.monotonic() > until) throw new Unmoved("A process of the workspace does not react to being paused.");
    await pause(clock, POLL_MS);
  }
};
