// Collects the log lines of a running job and sends them to its owner once per turn of the event loop, so that many lines need only one
// message. Keeps the order, sends one message at a time, and stops at the log's limit (rule JB-11).
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { nextTurn, retry } from "#base/retry.ts";
import type { LogLevel } from "#schema/log-level.ts";
import type { JobLogSource, JobTiming } from "#schema/workspaces/job.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import { countLogBytes, MAX_JOB_LOG_BYTES, type NewLogLine } from "./logs.ts";
import { isRetryable } from "./report-retries.ts";

/** Output of a job. A retry has the same `id`. */
export type JobOutput = {
  readonly id?: string;
  readonly logs: readonly NewLogLine[];
  readonly timings: readonly JobTiming[];
};

const RETRY_MS = 250;
const MAX_RETRY_MS = 2_000;
/** How long lines are sent again to an unavailable owner, and to an owner that rejects them for other reasons. */
const UNREACHABLE_RETRY_MS = 15 * 60_000;
const REFUSED_RETRY_MS = 5_000;
/** Maximum lines of one message, to keep commits short. */
const MAX_BATCH_LINES = 400;
/** A stage is stored with each of its lines. */
const MAX_STAGE_CHARS = 128;

export class JobReport implements Report {
  readonly #clock: Clock;
  readonly #send: (message: JobOutput) => Promise<unknown>;
  #logs: NewLogLine[] = [];
  #timings: JobTiming[] = [];
  #bytes = 0;
  #sending: Promise<void> | undefined;

  /** `send` sends the output to the job's owner. It is called again if it rejects. */
  constructor(clock: Clock, send: (message: JobOutput) => Promise<unknown>) {
    this.#clock = clock;
    this.#send = send;
  }

  log(level: LogLevel, stage: string, output: string): void {
    this.addLines("provisioner", level, stage, output);
  }

  /** Adds a line. Text with several lines is split. */
  addLines(source: JobLogSource, level: LogLevel, stage: string, text: string): void {
    if (this.#bytes > MAX_JOB_LOG_BYTES) return;
    for (const output of text.split(/\r?\n/)) {
      // Still sends the line that exceeds the limit, so that the owner marks the log as overflowed.
      if (this.#bytes > MAX_JOB_LOG_BYTES) break;
      this.#bytes += countLogBytes(output);
      this.#logs.push({ created_at: this.#clock.now(), source, level, stage: stage.slice(0, MAX_STAGE_CHARS), output });
    }
    this.#flush();
  }

  timing(timing: JobTiming): void {
    this.#timings.push(timing);
    this.#flush();
  }

  /** Resolves when all lines were delivered or given up. */
  async whenSettled(): Promise<void> {
    while (this.#sending) await this.#sending;
  }

  #flush(): void {
    this.#sending ??= nextTurn()
      .then(() => this.#sendBatch())
      .finally(() => {
        this.#sending = undefined;
        if (this.#logs.length > 0 || this.#timings.length > 0) this.#flush();
      });
  }

  async #sendBatch(): Promise<void> {
    const message: JobOutput = {
      id: uuid(),
      logs: this.#logs.splice(0, MAX_BATCH_LINES),
      timings: this.#timings.splice(0),
    };
    const beganAt = this.#clock.monotonic();
    const toRetryDelay = (error: unknown, failures: number): number | undefined => {
      const timeoutMs = isRetryable(error) ? UNREACHABLE_RETRY_MS : REFUSED_RETRY_MS;
      return this.#clock.monotonic() - beganAt < timeoutMs ? Math.min(MAX_RETRY_MS, failures * RETRY_MS) : undefined;
    };
    await retry(this.#clock, () => this.#send(message), toRetryDelay).catch(() => {});
  }
}
