// Ships log lines to the server: one queue per source, batches in order, one in flight at a time (rules DM-8 to DM-12). Each batch has an
// ID and is retried until acknowledged, so that a lost response neither loses nor duplicates lines.
import type { Clock } from "#base/clock.ts";
import { uuid, uuidToBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import type { LogLevel } from "#schema/log-level.ts";
import { Log_Level } from "#src/wire/gen/agent_pb.ts";
import { type Connection, DaemonStopped } from "../connection/connection.ts";
import { toTimestamp } from "../times.ts";
import { LineQueue, type LogLine } from "./line-queue.ts";

export type LogsOptions = { connection: Pick<Connection, "ask">; clock: Clock; random: Random };

const MAX_BATCH_LINES = 100;
const MAX_BATCH_BYTES = 64 * 1024;
/** Minimum time between two batches, unless the next one is full. */
const BATCH_INTERVAL_MS = 250;
const MAX_QUEUE_BYTES = 1024 * 1024;
const MAX_BACKOFF_MS = 10_000;
/** Maximum number of refused attempts, which take about five minutes. Connection failures are not counted. */
const MAX_REFUSALS = 35;

/** The source ID for lines that belong to no script. */
export const OWN_SOURCE = new Uint8Array(16);

const LEVELS: Readonly<Record<LogLevel, Log_Level>> = {
  trace: Log_Level.TRACE,
  debug: Log_Level.DEBUG,
  info: Log_Level.INFO,
  warn: Log_Level.WARN,
  error: Log_Level.ERROR,
};

/** The log sources of the agent. */
export class Logs {
  readonly #options: LogsOptions;
  readonly #sources = new Map<string, LogSource>();
  /** True once the server accepts no more lines from this agent, permanently. */
  #isFull = false;

  constructor(options: LogsOptions) {
    this.#options = options;
  }

  /** Returns the queue of a source, by its ID of 16 bytes. */
  getSource(id: Uint8Array): LogSource {
    const key = Buffer.from(id).toString("hex");
    const existing = this.#sources.get(key);
    if (existing) return existing;
    const createdSource = new LogSource(id.slice(), this.#options, {
      isFull: () => this.#isFull,
      setFull: () => {
        if (!this.#isFull) log("daemon").warn("the server stores no more log lines of this agent");
        this.#isFull = true;
      },
    });
    this.#sources.set(key, createdSource);
    return createdSource;
  }

  /** Sends queued lines without delay. Resolves when the queues are empty. */
  async flush(): Promise<void> {
    await Promise.all([...this.#sources.values()].map((source) => source.flush()));
  }
}

/** One source. `add` never blocks. */
export class LogSource {
  readonly #id: Uint8Array;
  readonly #options: LogsOptions;
  readonly #limit: { isFull(): boolean; setFull(): void };
  readonly #queue = new LineQueue(MAX_QUEUE_BYTES);
  #sending: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #batchDelay: AbortController | undefined;
  #isFlushing = false;

  constructor(id: Uint8Array, options: LogsOptions, limit: { isFull(): boolean; setFull(): void }) {
    this.#id = id;
    this.#options = options;
    this.#limit = limit;
  }

  add(line: LogLine): void {
    if (this.#limit.isFull()) return;
    this.#queue.push(line);
    if (this.#hasFullBatch) this.#batchDelay?.abort();
    this.#sending ??= this.#sendBatches();
  }

  async flush(): Promise<void> {
    this.#isFlushing = true;
    this.#batchDelay?.abort();
    await this.#sending;
  }

  get #hasFullBatch(): boolean {
    return this.#queue.length >= MAX_BATCH_LINES || this.#queue.bytes >= MAX_BATCH_BYTES;
  }

  async #sendBatches(): Promise<void> {
    // Lines that were read together share a batch.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0 && !this.#limit.isFull()) {
        await this.#waitUntilDue();
        await this.#send(this.#queue.take(MAX_BATCH_LINES, MAX_BATCH_BYTES));
      }
    } catch (error) {
      if (!(error instanceof DaemonStopped)) throw error;
    } finally {
      if (this.#limit.isFull()) this.#queue.clear();
      this.#sending = undefined;
    }
  }

  /** The first line is sent immediately; later ones wait briefly to share a batch. */
  async #waitUntilDue(): Promise<void> {
    const { clock } = this.#options;
    const delay_ms = this.#sentAt + BATCH_INTERVAL_MS - clock.monotonic();
    if (delay_ms > 0 && !this.#hasFullBatch && !this.#isFlushing) {
      this.#batchDelay = new AbortController();
      await pause(clock, delay_ms, this.#batchDelay.signal);
      this.#batchDelay = undefined;
    }
    this.#sentAt = clock.monotonic();
  }

  /** Sends one batch under one ID until it is acknowledged. */
  async #send(lines: readonly LogLine[]): Promise<void> {
    const { connection, clock, random } = this.#options;
    const logs = lines.map(({ at, level, output }) => ({ createdAt: toTimestamp(at), level: LEVELS[level], output }));
    const request = { logSourceId: this.#id, logs, batchId: uuidToBytes(uuid()) };
    for (let refusals = 0; ; refusals += 1) {
      try {
        const { logLimitExceeded } = await connection.ask((api, signal) => api.batchCreateLogs(request, signal));
        if (logLimitExceeded) this.#limit.setFull();
        return;
      } catch (error) {
        if (error instanceof DaemonStopped) throw error;
        if (refusals === MAX_REFUSALS) {
          log("daemon").error("log lines were refused: {error}", { error });
          this.#queue.countDropped(lines.length);
          return;
        }
        await pause(clock, backoff(refusals, MAX_BACKOFF_MS, random));
      }
    }
  }
}
