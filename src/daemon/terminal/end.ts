// Ends everything that runs in the session of a terminal, jobs in the background too: each job is a group of its own there (rule TM-8).
import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { pause } from "../pause.ts";

const KILL_AFTER_MS = 1_000;
const LOOK_AGAIN_MS = 20;

/** Hangs up on every process of the session, and kills what is left a second later. Resolves when none is left. */
export const endSession = async (session: number, clock: Clock): Promise<void> => {
  send(session, "SIGHUP");
  const until = clock.monotonic() + KILL_AFTER_MS;
  while (membersOf(session).length > 0 && clock.monotonic() < until) await pause(clock, LOOK_AGAIN_MS);
  send(session, "SIGKILL");
};

const send = (session: number, signal: "SIGHUP" | "SIGKILL"): void => {
  for (const pid of membersOf(session)) {
    try {
      process.kill(pid, signal);
      // What is stopped does not hear of it otherwise.
      if (signal === "SIGHUP") process.kill(pid, "SIGCONT");
    } catch {
      // It ended while we looked.
    }
  }
};

/** Living processes of the session; where there is no /proc, its leader alone. */
const membersOf = (session: number): number[] => {
  let names: string[];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return isAlive(session) ? [session] : [];
  }
  return names.map(Number).filter((pid) => isMember(pid, session));
};

const isMember = (pid: number, session: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold anything; behind it come state, parent, group and session.
    const [state, , , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === session && state !== "Z" && state !== "X";
  } catch {
    return false;
  }
};

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
