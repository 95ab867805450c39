// Ends everything in the session of a terminal, including background jobs, which have their own process groups (rule TM-8).
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { listProcessIds, readStatFields } from "../own-processes.ts";

const KILL_DELAY_MS = 1_000;
const POLL_INTERVAL_MS = 20;

/** Sends SIGHUP to every process of the session. Kills the processes that are still alive a second later. */
export const endSession = (session: number, clock: Clock): Promise<void> =>
  endProcesses(() => listMembers(session), clock);

/** Like endSession(), for the processes that `listLiving` returns. */
export const endProcesses = async (listLiving: () => readonly number[], clock: Clock): Promise<void> => {
  send(listLiving(), "SIGHUP");
  const deadlineMs = clock.monotonic() + KILL_DELAY_MS;
  while (listLiving().length > 0 && clock.monotonic() < deadlineMs) await pause(clock, POLL_INTERVAL_MS);
  send(listLiving(), "SIGKILL");
};

const send = (processes: readonly number[], signal: "SIGHUP" | "SIGKILL"): void => {
  for (const pid of processes) {
    try {
      process.kill(pid, signal);
      // A stopped process does not receive the signal otherwise.
      if (signal === "SIGHUP") process.kill(pid, "SIGCONT");
    } catch {
      // The process ended in the meantime.
    }
  }
};

/** Returns the living processes of the session; without /proc, only its leader. */
const listMembers = (session: number): number[] =>
  listProcessIds()?.filter((pid) => isMember(pid, session)) ?? (isAlive(session) ? [session] : []);

const isMember = (pid: number, session: number): boolean => {
  const [state, , , processSession] = readStatFields(pid);
  return Number(processSession) === session && state !== "Z" && state !== "X";
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
