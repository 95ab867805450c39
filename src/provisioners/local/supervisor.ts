// Watches over the daemons of local workspaces: one that has died is started again, after a pause that doubles with each try, until it
// has died too often in a row. Looks instead of waiting for children, because daemons outlive the server that started them (rule LP-13).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { afterDeath, type Watched } from "./restarts.ts";

export type SupervisorDeps = {
  readonly clock: Clock;
  /** Whether the daemon of the workspace runs; undefined when the workspace is not known to run at all any more. */
  readonly lives: (workspace_id: string) => boolean | undefined;
  /** Starts it again as it was. Throws when that cannot be done. */
  readonly restart: (workspace_id: string) => void;
};

const LOOK_MS = 500;
/** One that was started again has this long to get back to its server. */
const ARRIVAL_MS = 15_000;

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #watched = new Map<string, Watched>();
  #timer: Timer | undefined;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
  }

  /** From now on the workspace's daemon, which has just been started or was found, is kept alive. */
  watch(workspace_id: string): void {
    this.#watched.set(workspace_id, { deaths: 0, since: this.#deps.clock.monotonic(), retry_at: null });
    this.#timer ??= this.#deps.clock.every(LOOK_MS, () => this.#look());
  }

  /** Its end is wanted. */
  release(workspace_id: string): void {
    this.#watched.delete(workspace_id);
    if (this.#watched.size === 0) this.stop();
  }

  /** Nothing is started again any more; what runs continues. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#watched.clear();
  }

  /** The try that is under way or comes next, from 1, of a daemon that has died; undefined when it lives or was given up. */
  restarting(workspace_id: string): number | undefined {
    const { clock, lives } = this.#deps;
    const watched = this.#watched.get(workspace_id);
    const isAlive = watched && lives(workspace_id);
    if (!watched || isAlive === undefined) return undefined;
    if (watched.retry_at !== null) return watched.deaths;
    // It may have died since the last look.
    if (!isAlive) return watched.deaths + 1;
    return watched.deaths > 0 && clock.monotonic() - watched.since < ARRIVAL_MS ? watched.deaths : undefined;
  }

  #look(): void {
    const now = this.#deps.clock.monotonic();
    for (const [id, watched] of [...this.#watched]) {
      if (watched.retry_at === null) this.#check(id, watched, now);
      else if (now >= watched.retry_at) this.#restart(id, watched, now);
    }
  }

  #check(id: string, watched: Watched, now: number): void {
    const lives = this.#deps.lives(id);
    if (lives === undefined) this.release(id);
    if (lives === false) this.#died(id, watched, now, "it has died");
  }

  #restart(id: string, watched: Watched, now: number): void {
    try {
      this.#deps.restart(id);
      this.#watched.set(id, { ...watched, since: now, retry_at: null });
      log("local").warn("the daemon of workspace {id} was started again, try {attempt}", {
        id,
        attempt: watched.deaths,
      });
    } catch (error) {
      this.#died(id, watched, now, error instanceof Error ? error.message : String(error));
    }
  }

  #died(id: string, watched: Watched, now: number, reason: string): void {
    const next = afterDeath(watched, now);
    if (next) this.#watched.set(id, next);
    else {
      log("local").error("the daemon of workspace {id} is given up until its next start: {reason}", { id, reason });
      this.release(id);
    }
  }
}
