// Collects the log lines of a running job and sends them to its owner once per turn of the event loop, so that a build that prints a
// thousand lines costs one message. Keeps order, sends one message at a time, and is bounded by the log's limit (rule JB-11).
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { nextTurn, retry } from "#base/retry.ts";
import type { LogLevel } from "#schema/log-level.ts";
import type { JobLogSource, JobTiming } from "#schema/workspaces/job.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import { JOB_LOG_LIMIT, type NewLogLine } from "./logs.ts";
import { isRetryable } from "./patience.ts";

/** `id` is the same for a retry. */
export type Said = {
  readonly id?: string;
  readonly logs: readonly NewLogLine[];
  readonly timings: readonly JobTiming[];
};

const RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;
/** How long lines wait for an unavailable database, and for an owner that rejects them for other reasons. */
const AWAY_MS = 15 * 60_000;
const REFUSED_MS = 5_000;
/** Maximum lines of one message, to keep commits short. */
const LINES = 400;

export class JobReport implements Report {
  readonly #clock: Clock;
  readonly #send: (said: Said) => Promise<unknown>;
  #logs: NewLogLine[] = [];
  #timings: JobTiming[] = [];
  #bytes = 0;
  #sending: Promise<void> | undefined;

  /** `send` delivers the lines to the owner. It is retried while the owner is overloaded. */
  constructor(clock: Clock, send: (said: Said) => Promise<unknown>) {
    this.#clock = clock;
    this.#send = send;
  }

  log(level: LogLevel, stage: string, output: string): void {
    this.say("provisioner", level, stage, output);
  }

  /** Adds a line. Text with several lines is split. */
  say(source: JobLogSource, level: LogLevel, stage: string, text: string): void {
    for (const output of text.split(/\r?\n/)) {
      // Still sends the line that exceeds the limit, so that the owner marks the log as overflowed.
      if (this.#bytes > JOB_LOG_LIMIT) return;
      this.#bytes += Buffer.byteLength(output);
      this.#logs.push({ created_at: this.#clock.now(), source, level, stage, output });
    }
    this.#flush();
  }

  timing(timing: JobTiming): void {
    this.#timings.push(timing);
    this.#flush();
  }

  /** Resolves when all lines so far were delivered or given up. */
  async settled(): Promise<void> {
    while (this.#sending) await this.#sending;
  }

  #flush(): void {
    this.#sending ??= nextTurn()
      .then(() => this.#hand())
      .finally(() => {
        this.#sending = undefined;
        if (this.#logs.length > 0 || this.#timings.length > 0) this.#flush();
      });
  }

  async #hand(): Promise<void> {
    const said: Said = { id: uuid(), logs: this.#logs.splice(0, LINES), timings: this.#timings.splice(0) };
    const began = this.#clock.monotonic();
    const again = (error: unknown, failures: number): number | undefined => {
      const patience = isRetryable(error) ? AWAY_MS : REFUSED_MS;
      return this.#clock.monotonic() - began < patience ? Math.min(MAX_RETRY_MS, failures * RETRY_MS) : undefined;
    };
    await retry(this.#clock, () => this.#send(said), again).catch(() => {});
  }
}
