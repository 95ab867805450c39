// Watches the daemons of local workspaces and restarts a daemon that has died, with a delay that doubles each time, unless it has died too
// often in a row. Polls instead of waiting for child processes, because daemons outlive the server that started them (rule LP-13).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { scheduleRestart, type WatchedDaemon } from "./restarts.ts";

export type SupervisorDeps = {
  readonly clock: Clock;
  /** Returns true if the workspace's daemon runs; undefined if the workspace was stopped. */
  readonly isRunning: (workspace_id: string) => boolean | undefined;
  /** Restarts the daemon unchanged. Throws if that fails. */
  readonly restart: (workspace_id: string) => void;
};

const POLL_INTERVAL_MS = 500;
/** How long a restarted daemon may take to reconnect to its server. */
const CONNECT_TIMEOUT_MS = 15_000;

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #watched = new Map<string, WatchedDaemon>();
  #timer: Timer | undefined;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
  }

  /** Starts watching a running daemon. */
  watch(workspace_id: string): void {
    this.#watched.set(workspace_id, { deaths: 0, since: this.#deps.clock.monotonic(), retry_at: null });
    this.#timer ??= this.#deps.clock.every(POLL_INTERVAL_MS, () => this.#checkAll());
  }

  /** Stops watching a daemon, so that it can end. */
  release(workspace_id: string): void {
    this.#watched.delete(workspace_id);
    if (this.#watched.size === 0) this.stop();
  }

  /** Stops restarting daemons; running ones continue. */
  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#watched.clear();
  }

  /** Returns the number of the current or next restart attempt, beginning with 1; undefined if the daemon is alive or is not restarted. */
  getRestartAttempt(workspace_id: string): number | undefined {
    const { clock, isRunning } = this.#deps;
    const watched = this.#watched.get(workspace_id);
    const isAlive = watched && isRunning(workspace_id);
    if (!watched || isAlive === undefined) return undefined;
    if (watched.retry_at !== null) return watched.deaths;
    // The daemon may have died since the last check.
    if (!isAlive) return watched.deaths + 1;
    return watched.deaths > 0 && clock.monotonic() - watched.since < CONNECT_TIMEOUT_MS ? watched.deaths : undefined;
  }

  #checkAll(): void {
    const now = this.#deps.clock.monotonic();
    for (const [id, watched] of [...this.#watched]) {
      if (watched.retry_at === null) this.#check(id, watched, now);
      else if (now >= watched.retry_at) this.#restart(id, watched, now);
    }
  }

  #check(id: string, watched: WatchedDaemon, now: number): void {
    const isRunning = this.#deps.isRunning(id);
    if (isRunning === undefined) this.release(id);
    if (isRunning === false) this.#onDeath(id, watched, now, "it has died");
  }

  #restart(id: string, watched: WatchedDaemon, now: number): void {
    try {
      this.#deps.restart(id);
      this.#watched.set(id, { ...watched, since: now, retry_at: null });
      log("local").warn("the daemon of workspace {id} was started again, try {attempt}", {
        id,
        attempt: watched.deaths,
      });
    } catch (error) {
      this.#onDeath(id, watched, now, error instanceof Error ? error.message : String(error));
    }
  }

  #onDeath(id: string, watched: WatchedDaemon, now: number, reason: string): void {
    const next = scheduleRestart(watched, now);
    if (next) this.#watched.set(id, next);
    else {
      log("local").error(
        "the daemon of workspace {id} is not restarted again until the workspace's next start: {reason}",
        { id, reason },
      );
      this.release(id);
    }
  }
}
