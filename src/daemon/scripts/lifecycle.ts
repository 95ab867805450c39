// Reports the agent's lifecycle state to the server: every change in order. Reports the latest state again on each new connection, with its
// original time, in case the server has lost it (rules DM-4, DM-5).
import type { Clock } from "#base/clock.ts";
import type { LifecycleState } from "#schema/agents/agent.ts";
import { Lifecycle_State } from "#src/wire/gen/agent_pb.ts";
import type { Reports } from "../connection/reports.ts";
import { toTimestamp } from "../times.ts";

const STATES: Readonly<Record<LifecycleState, Lifecycle_State>> = {
  created: Lifecycle_State.CREATED,
  starting: Lifecycle_State.STARTING,
  start_timeout: Lifecycle_State.START_TIMEOUT,
  start_error: Lifecycle_State.START_ERROR,
  ready: Lifecycle_State.READY,
  shutting_down: Lifecycle_State.SHUTTING_DOWN,
  shutdown_timeout: Lifecycle_State.SHUTDOWN_TIMEOUT,
  shutdown_error: Lifecycle_State.SHUTDOWN_ERROR,
  off: Lifecycle_State.OFF,
};

export class Lifecycle {
  readonly #reports: Reports;
  readonly #clock: Clock;
  #latest: { state: LifecycleState; at: number } | undefined;
  #pendingCount = 0;

  constructor(options: { reports: Reports; clock: Clock }) {
    this.#reports = options.reports;
    this.#clock = options.clock;
  }

  /** Enters a state and reports it. */
  enter(state: LifecycleState): void {
    // The server rejects reports older than the last one, and the wall clock may be set back.
    const at = Math.max(this.#clock.now(), this.#latest?.at ?? 0);
    this.#latest = { state, at };
    void this.#report(this.#latest);
  }

  /** Reports the latest state again on a new connection, unless that report is still queued. */
  resend(): void {
    if (this.#latest && this.#pendingCount === 0) void this.#report(this.#latest);
  }

  async #report({ state, at }: { state: LifecycleState; at: number }): Promise<void> {
    this.#pendingCount += 1;
    const lifecycle = { state: STATES[state], changedAt: toTimestamp(at) };
    await this.#reports.add(`lifecycle ${state}`, (api, signal) => api.updateLifecycle({ lifecycle }, signal));
    this.#pendingCount -= 1;
  }
}
