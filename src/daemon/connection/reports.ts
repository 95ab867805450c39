// What the server must hear in order and not more than a connection late: lifecycle states and script timings. One after the other,
// each until it is answered (rule DM-4). Refused ones are given up after a few tries, since what is behind them matters more.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import { RpcError } from "#src/wire/index.ts";
import { type Call, type Connection, Stopped } from "./connection.ts";

export type ReportsOptions = { connection: Pick<Connection, "ask">; clock: Clock; random: Random };

const MAX_WAITING = 1_000;
const TRIES = 5;
const CEILING_MS = 5_000;

export class Reports {
  readonly #options: ReportsOptions;
  #waiting = 0;
  #tail: Promise<void> = Promise.resolve();

  constructor(options: ReportsOptions) {
    this.#options = options;
  }

  /** Queues a report. Resolves when it was delivered or given up; never rejects. With 1,000 waiting, new ones are dropped. */
  add(what: string, call: Call<unknown>): Promise<void> {
    if (this.#waiting >= MAX_WAITING) {
      log("daemon").warn("too many reports wait, dropped: {what}", { what });
      return Promise.resolve();
    }
    this.#waiting += 1;
    this.#tail = this.#tail.then(async () => {
      await this.#deliver(what, call);
      this.#waiting -= 1;
    });
    return this.#tail;
  }

  /** Resolves when nothing waits. */
  flush(): Promise<void> {
    return this.#tail;
  }

  async #deliver(what: string, call: Call<unknown>): Promise<void> {
    const { connection, clock, random } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        await connection.ask(call);
        return;
      } catch (error) {
        if (error instanceof Stopped) return;
        const reason = error instanceof Error ? error.message : String(error);
        if (!(error instanceof RpcError) || tries === TRIES) {
          log("daemon").error("the server refused a report: {what}: {reason}", { what, reason });
          return;
        }
        await pause(clock, backoff(tries, CEILING_MS, random));
      }
    }
  }
}
