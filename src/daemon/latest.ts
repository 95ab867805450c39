// Reports the latest value of each key (metadata, app health) in batches. A value that changes while a batch is in flight is sent with the
// next batch (rule DM-14).
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { pause } from "#base/retry.ts";
import { type Call, type Connection, DaemonStopped } from "./connection/connection.ts";

export type LatestReporterOptions<T> = {
  connection: Pick<Connection, "ask">;
  clock: Clock;
  /** A name for the daemon's log. */
  what: string;
  /** Minimum time between two batches. */
  gap_ms: number;
  send(values: readonly T[]): Call<unknown>;
};

export class LatestReporter<T> {
  readonly #options: LatestReporterOptions<T>;
  readonly #values = new Map<string, T>();
  #isSending = false;

  constructor(options: LatestReporterOptions<T>) {
    this.#options = options;
  }

  report(key: string, value: T): void {
    this.#values.set(key, value);
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    const { connection, clock, what, gap_ms, send } = this.#options;
    this.#isSending = true;
    // Values set in the same tick share a batch.
    await Promise.resolve();
    while (this.#values.size > 0) {
      const values = [...this.#values.values()];
      this.#values.clear();
      try {
        await connection.ask(send(values));
      } catch (error) {
        if (error instanceof DaemonStopped) return;
        log("daemon").warn("the server refused {what}: {error}", { what, error });
      }
      await pause(clock, gap_ms);
    }
    this.#isSending = false;
  }
}
