// The process groups of everything the daemon has started, so that nothing stays behind (rule DM-16). A group outlives the program
// that led it: a script may leave a server running in the background, which is right until the daemon stops.
import { readdirSync, readFileSync } from "node:fs";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { AGENT_MARK } from "../environment.ts";

const KILL_AFTER_MS = 5_000;
const LOOK_AGAIN_MS = 20;

export class ProcessGroups {
  readonly #clock: Clock;
  readonly #mark: string;
  readonly #groups = new Set<number>();
  /** Those whose first process, our child, has not ended. */
  readonly #led = new Set<number>();

  /** The agent's id stands in the environment of all that is started: it tells our processes from others when an id is used again. */
  constructor(options: { clock: Clock; agent_id: string }) {
    this.#clock = options.clock;
    this.#mark = `${AGENT_MARK}=${options.agent_id}`;
  }

  /** A group was started; its id is that of its first process. */
  add(group: number): void {
    this.#groups.add(group);
    this.#led.add(group);
  }

  /** The first process of the group has ended: forgets the group when no other is left in it. */
  ended(group: number): void {
    this.#led.delete(group);
    this.#forgetIfGone(group);
  }

  /** Asks the group to end, and ends it five seconds later. */
  end(group: number): void {
    this.#send(group, "SIGTERM");
    this.#clock.after(KILL_AFTER_MS, () => this.#send(group, "SIGKILL"));
  }

  /** Asks all groups to end and waits for it, at most `grace_ms` milliseconds; then kills the rest. */
  async endAll(grace_ms: number): Promise<void> {
    for (const group of this.#groups) this.#send(group, "SIGTERM");
    const until = this.#clock.monotonic() + grace_ms;
    while (this.#living().length > 0 && this.#clock.monotonic() < until) await pause(this.#clock, LOOK_AGAIN_MS);
    for (const group of this.#living()) this.#send(group, "SIGKILL");
  }

  #living(): number[] {
    for (const group of [...this.#groups]) this.#forgetIfGone(group);
    return [...this.#groups];
  }

  #forgetIfGone(group: number): void {
    if (!this.#isAlive(group)) this.#groups.delete(group);
  }

  #send(group: number, signal: "SIGTERM" | "SIGKILL"): void {
    if (!this.#isAlive(group)) return;
    try {
      process.kill(-group, signal);
    } catch {
      // It ended while we looked.
    }
  }

  #isAlive(group: number): boolean {
    try {
      process.kill(-group, 0);
    } catch {
      return false;
    }
    if (this.#led.has(group)) return true;
    // Where the system tells, what only waits to be collected does not count, and neither does someone else's group.
    const members = listMembers(group);
    return members === undefined || members.some((pid) => this.#isOurs(pid));
  }

  #isOurs(pid: number): boolean {
    try {
      return `\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(`\0${this.#mark}\0`);
    } catch {
      return false;
    }
  }
}

/** Living processes of a group; undefined where there is no /proc. */
const listMembers = (group: number): number[] | undefined => {
  let names: string[];
  try {
    names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return undefined;
  }
  return names.length === 0 ? undefined : names.map(Number).filter((pid) => isMember(pid, group));
};

const isMember = (pid: number, group: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold anything; behind it come state, parent and group.
    const [state, , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === group && state !== "Z" && state !== "X";
  } catch {
    return false;
  }
};
