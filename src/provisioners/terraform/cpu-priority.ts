// Lowers the CPU priority of Terraform's programs, because ten parallel runs could prevent the server from responding (rule TF-33). The
// niceness grows with the number of programs: many slightly niced programs outweigh the server, but a single one must not starve next to
// workspaces that compile.
import { readFileSync, writeFileSync } from "node:fs";

const BASE_NICENESS = 13;
const MAX_NICENESS = 19;
/**
 * Number of parallel programs to assume for an apply. The apply may start the processes of the workspace, which keep their niceness even if
 * fewer programs run later.
 */
const ASSUMED_PROGRAMS = 10;
/** The factor by which one step of niceness changes the weight of a process (sched(7)). */
const WEIGHT_PER_NICENESS = 1.25;
/** Maximum number of checks whether a command that was just started leads its own session. */
const MAX_SESSION_CHECKS = 50;
const nice = Bun.which("nice");
const setsid = Bun.which("setsid");

/**
 * True if Bun must create the session of each command, because this system has no `setsid`. `setsid` is preferred: Bun's spawn waits until
 * the child executes its program, and that can take up to 60 ms longer if the child already has its own session.
 */
export const DETACHED = setsid === null;

/** Commands that currently run with a low priority. */
const running = new Set<CommandPriority>();

/**
 * Returns the niceness for this many parallel commands. Up to four commands together have about the weight of a single one; more commands
 * have the lowest priority.
 */
export const getNiceness = (count: number): number =>
  Math.min(MAX_NICENESS, BASE_NICENESS + Math.round(Math.log(Math.max(1, count)) / Math.log(WEIGHT_PER_NICENESS)));

/** The priority of one running command. */
export class CommandPriority {
  /** The niceness of the command's session, once it is set. */
  #niceness: number | undefined;
  #isLeader = DETACHED;
  #sessionChecks = 0;
  readonly #isLowPriority: boolean;

  constructor(isLowPriority = true) {
    this.#isLowPriority = isLowPriority;
    if (isLowPriority) running.add(this);
  }

  /** True once the session's priority is set, or if it cannot be set. */
  get isSettled(): boolean {
    return !this.#isLowPriority || this.#niceness !== undefined || this.#sessionChecks > MAX_SESSION_CHECKS;
  }

  /** Returns the words to put before the program's path; `command` is the program's first argument. */
  toPrefix(command: string | undefined): readonly string[] {
    const session = setsid === null ? [] : [setsid];
    return nice === null || !this.#isLowPriority
      ? session
      : [...session, nice, "-n", `${command === "apply" ? ASSUMED_PROGRAMS : getNiceness(running.size)}`];
  }

  /**
   * Lowers the priority of the command's session, according to the current number of commands. Linux may divide CPU time among sessions
   * before processes (autogroup in sched(7)), and every command has its own session, so the server's session would be one of many. Must be
   * called repeatedly: an unprivileged user may change a session only once in 100 ms, so sessions with normal priority are changed first.
   */
  lower(pid: number): void {
    if (!this.#isLowPriority) return;
    this.#sessionChecks += 1;
    // Until the process leads its own session, this would change the session of the server.
    if (!this.#isLeader) this.#isLeader = isSessionLeader(pid);
    if (!this.#isLeader) return;
    if (this.#niceness !== undefined && [...running].some((other) => other.#niceness === undefined)) return;
    const niceness = getNiceness(running.size);
    if (niceness !== this.#niceness && setSessionNiceness(pid, niceness)) this.#niceness = niceness;
  }

  [Symbol.dispose](): void {
    running.delete(this);
  }
}

/**
 * Returns true if the process leads its own session, which is needed to lower its priority and to end it; also true if the system does not
 * report sessions.
 */
const isSessionLeader = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // After the name in parentheses: state, parent, group, session.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3] === `${pid}`;
  } catch {
    return true;
  }
};

/** Sets the niceness of a session. Returns false if the caller must try again later. */
const setSessionNiceness = (pid: number, niceness: number): boolean => {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${niceness}`);
    return true;
  } catch (error) {
    // Any other error means that the system does not support this, or that the process has ended.
    return (error as NodeJS.ErrnoException).code !== "EAGAIN";
  }
};
