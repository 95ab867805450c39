// Delivers reports that must arrive in order and promptly: lifecycle states and script timings. Sends one at a time and waits for its
// acknowledgment (rule DM-4). Drops a rejected report after a few attempts, because later reports matter more.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import { RpcError } from "#src/wire/index.ts";
import { type Call, type Connection, DaemonStopped } from "./connection.ts";

export type ReportsOptions = { connection: Pick<Connection, "ask">; clock: Clock; random: Random };

const MAX_QUEUED = 1_000;
const MAX_ATTEMPTS = 5;
const MAX_BACKOFF_MS = 5_000;

export class Reports {
  readonly #options: ReportsOptions;
  #queuedCount = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  /** Queues a report. Resolves when the report was delivered or dropped; never rejects. Drops new reports while 1,000 are queued. */
  add(what: string, call: Call<unknown>): Promise<void> {
    if (this.#queuedCount >= MAX_QUEUED) {
      log("daemon").warn("too many reports wait, dropped: {what}", { what });
      return Promise.resolve();
    }
    this.#queuedCount += 1;
    this.#tail = this.#tail.then(async () => {
      await this.#deliver(what, call);
      this.#queuedCount -= 1;
    });
    return this.#tail;
  }

  /** Resolves when the queue is empty. */
  flush(): Promise<void> {
    return this.#tail;
  }

  async #deliver(what: string, call: Call<unknown>): Promise<void> {
    const { connection, clock, random } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await connection.ask(call);
        return;
      } catch (error) {
        if (error instanceof DaemonStopped) return;
        const reason = error instanceof Error ? error.message : String(error);
        if (!(error instanceof RpcError) || attempt === MAX_ATTEMPTS) {
          log("daemon").error("the server refused a report: {what}: {reason}", { what, reason });
          return;
        }
        await pause(clock, backoff(attempt, MAX_BACKOFF_MS, random));
      }
    }
  }
}
