// Tracks the process groups of all programs that the daemon has started, so that it can end all of them (rule DM-16). A group outlives its
// first process: a script may leave a server running in the background, which is allowed until the daemon stops.
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";
import { AGENT_ID_VARIABLE } from "../environment.ts";
import { listProcessIds, readProc, readStatFields } from "../own-processes.ts";

const KILL_DELAY_MS = 5_000;
const POLL_INTERVAL_MS = 20;

export class ProcessGroups {
  readonly #clock: Clock;
  readonly #idVariable: string;
  readonly #groups = new Set<number>();
  /** Groups whose first process, our child, is still running. */
  readonly #leaders = new Set<number>();

  /**
   * `agent_id` is in the environment of every process of the daemon. It distinguishes these from processes of other programs that have
   * reused a process ID.
   */
  constructor(options: { clock: Clock; agent_id: string }) {
    this.#clock = options.clock;
    this.#idVariable = `${AGENT_ID_VARIABLE}=${options.agent_id}`;
  }

  /** Registers a started group; its ID is that of its first process. */
  add(group: number): void {
    this.#groups.add(group);
    this.#leaders.add(group);
  }

  /** Handles the end of a group's first process: forgets the group if no other process is left. */
  onLeaderEnd(group: number): void {
    this.#leaders.delete(group);
    this.#removeIfEnded(group);
  }

  /** Asks the group to end, and kills it five seconds later. */
  end(group: number): void {
    this.#send(group, "SIGTERM");
    this.#clock.after(KILL_DELAY_MS, () => this.#send(group, "SIGKILL"));
  }

  /** Asks all groups to end, waits up to `grace_ms`, and kills the groups that are still alive. */
  async endAll(grace_ms: number): Promise<void> {
    for (const group of this.#groups) this.#send(group, "SIGTERM");
    const deadlineMs = this.#clock.monotonic() + grace_ms;
    while (this.#listAlive().length > 0 && this.#clock.monotonic() < deadlineMs)
      await pause(this.#clock, POLL_INTERVAL_MS);
    for (const group of this.#listAlive()) this.#send(group, "SIGKILL");
  }

  #listAlive(): number[] {
    for (const group of [...this.#groups]) this.#removeIfEnded(group);
    return [...this.#groups];
  }

  #removeIfEnded(group: number): void {
    if (!this.#isAlive(group)) this.#groups.delete(group);
  }

  #send(group: number, signal: "SIGTERM" | "SIGKILL"): void {
    if (!this.#isAlive(group)) return;
    try {
      process.kill(-group, signal);
    } catch {
      // The process ended in the meantime.
    }
  }

  #isAlive(group: number): boolean {
    try {
      process.kill(-group, 0);
    } catch {
      return false;
    }
    if (this.#leaders.has(group)) return true;
    // Excludes zombies and groups of other owners, if /proc is available.
    const members = listMembers(group);
    return members === undefined || members.some((pid) => this.#isOurs(pid));
  }

  #isOurs(pid: number): boolean {
    return `\0${readProc(`/proc/${pid}/environ`)}`.includes(`\0${this.#idVariable}\0`);
  }
}

/** Returns the living processes of a group; undefined without /proc. */
const listMembers = (group: number): number[] | undefined => {
  const pids = listProcessIds() ?? [];
  return pids.length === 0 ? undefined : pids.filter((pid) => isMember(pid, group));
};

const isMember = (pid: number, group: number): boolean => {
  const [state, , processGroup] = readStatFields(pid);
  return Number(processGroup) === group && state !== "Z" && state !== "X";
};
