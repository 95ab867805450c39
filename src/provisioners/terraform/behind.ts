// Programs of Terraform give way to the server where both want the processor: ten runs at once kept it from answering (rule TF-33). Ten that give
// way a little weigh as much as the server, so each gives way the more, the more of them there are; one alone must not starve alongside workspaces
// that compile.
import { readFileSync, writeFileSync } from "node:fs";

const ALONE = 13;
const LAST = 19;
/** Of what an apply starts, which may be the workspace: it keeps it, however few run later. */
const STARTED = 10;
/** What one step of niceness takes from the weight of a process (sched(7)). */
const STEP = 1.25;
/** Looks in a row for the session of a command that has just been started. */
const MAX_LOOKS = 50;
const nice = Bun.which("nice");
const setsid = Bun.which("setsid");

/**
 * Whether a command has to be given its session as it is started, because nothing here gives it one afterwards. Anyone who starts a process waits until
 * it has become its program, and one with a session of its own first waits for the processor among all others: up to 60 ms alongside ten of them.
 */
export const DETACHED = setsid === null;

/** Commands under way in this process. */
const running = new Set<Behind>();

/** For each of so many commands at once: up to four weigh together about what one does alone; further nobody can give way. */
export const getNiceness = (count: number): number =>
  Math.min(LAST, ALONE + Math.round(Math.log(Math.max(1, count)) / Math.log(STEP)));

/** One command for as long as it runs. */
export class Behind {
  /** That of its session, once it has one. */
  #niceness: number | undefined;
  #leads = DETACHED;
  #looks = 0;
  readonly #givesWay: boolean;

  constructor(givesWay = true) {
    this.#givesWay = givesWay;
    if (givesWay) running.add(this);
  }

  /** Its session weighs what it should, or cannot be made to. */
  get isPut(): boolean {
    return !this.#givesWay || this.#niceness !== undefined || this.#looks > MAX_LOOKS;
  }

  /** Words in front of the command. */
  words(command: string | undefined): readonly string[] {
    const session = setsid === null ? [] : [setsid];
    return nice === null || !this.#givesWay
      ? session
      : [...session, nice, "-n", `${command === "apply" ? STARTED : getNiceness(running.size)}`];
  }

  /**
   * Puts the session of this process behind others, too, as far as the number of commands now says. Linux may share the processor among sessions
   * before it looks at processes (autogroup in sched(7)), and every command is a session of its own, alongside which the server's would be one of
   * many. To be called again and again: anyone who is not root may do it once in 100 ms, and those go first that are not behind at all.
   */
  put(pid: number): void {
    if (!this.#givesWay) return;
    this.#looks += 1;
    // Until then it would be the server's own.
    if (!this.#leads) this.#leads = leadsSession(pid);
    if (!this.#leads) return;
    if (this.#niceness !== undefined && [...running].some((other) => other.#niceness === undefined)) return;
    const niceness = getNiceness(running.size);
    if (niceness !== this.#niceness && putSession(pid, niceness)) this.#niceness = niceness;
  }

  [Symbol.dispose](): void {
    running.delete(this);
  }
}

/** Whether it has the session by which it is put behind and ended; also where the system does not tell. */
const leadsSession = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Behind the name in parentheses: state, parent, group, session.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[3] === `${pid}`;
  } catch {
    return true;
  }
};

/** False: to be tried again. */
const putSession = (pid: number, niceness: number): boolean => {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${niceness}`);
    return true;
  } catch (error) {
    // Anything else says that there is no such thing here, or that the process has ended.
    return (error as NodeJS.ErrnoException).code !== "EAGAIN";
  }
};
