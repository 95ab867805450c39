// Ships log lines to the server: one queue per source, batches in order, one in flight at a time (rules DM-8 to DM-12). Each batch has an
// ID and is retried until acknowledged, so that a lost response neither loses nor duplicates lines.
import type { Clock } from "#base/clock.ts";
import { uuid, uuidBytes } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import { backoff, pause } from "#base/retry.ts";
import type { LogLevel } from "#schema/log-level.ts";
import { Log_Level } from "#src/wire/gen/agent_pb.ts";
import { type Connection, Stopped } from "../connection/connection.ts";
import { timestamp } from "../times.ts";
import { LineQueue, type LogLine } from "./line-queue.ts";

export type LogsOptions = { connection: Pick<Connection, "ask">; clock: Clock; random: Random };

const BATCH_LINES = 100;
const BATCH_BYTES = 64 * 1024;
/** Minimum time between two batches, unless the next one is full. */
const BATCH_GAP_MS = 250;
const QUEUE_BYTES = 1024 * 1024;
const CEILING_MS = 10_000;
/** About five minutes of attempts. Connection failures are not counted. */
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
  #full = false;

  constructor(options: LogsOptions) {
    this.#options = options;
  }

  /** Returns the queue of a source, by its ID of 16 bytes. */
  source(id: Uint8Array): LogSource {
    const key = Buffer.from(id).toString("hex");
    const known = this.#sources.get(key);
    if (known) return known;
    const made = new LogSource(id.slice(), this.#options, {
      isFull: () => this.#full,
      setFull: () => {
        if (!this.#full) log("daemon").warn("the server stores no more log lines of this agent");
        this.#full = true;
      },
    });
    this.#sources.set(key, made);
    return made;
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
  readonly #queue = new LineQueue(QUEUE_BYTES);
  #shipping: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #gap: AbortController | undefined;
  #hurry = false;

  constructor(id: Uint8Array, options: LogsOptions, limit: { isFull(): boolean; setFull(): void }) {
    this.#id = id;
    this.#options = options;
    this.#limit = limit;
  }

  add(line: LogLine): void {
    if (this.#limit.isFull()) return;
    this.#queue.push(line);
    if (this.#isBatch) this.#gap?.abort();
    this.#shipping ??= this.#ship();
  }

  async flush(): Promise<void> {
    this.#hurry = true;
    this.#gap?.abort();
    await this.#shipping;
  }

  get #isBatch(): boolean {
    return this.#queue.length >= BATCH_LINES || this.#queue.bytes >= BATCH_BYTES;
  }

  async #ship(): Promise<void> {
    // Lines that were read together share a batch.
    await Promise.resolve();
    try {
      while (this.#queue.length > 0 && !this.#limit.isFull()) {
        await this.#untilDue();
        await this.#send(this.#queue.take(BATCH_LINES, BATCH_BYTES));
      }
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    } finally {
      if (this.#limit.isFull()) this.#queue.clear();
      this.#shipping = undefined;
    }
  }

  /** The first line is sent immediately; later ones wait briefly to share a batch. */
  async #untilDue(): Promise<void> {
    const { clock } = this.#options;
    const wait = this.#sentAt + BATCH_GAP_MS - clock.monotonic();
    if (wait > 0 && !this.#isBatch && !this.#hurry) {
      this.#gap = new AbortController();
      await pause(clock, wait, this.#gap.signal);
      this.#gap = undefined;
    }
    this.#sentAt = clock.monotonic();
  }

  /** Sends one batch under one ID until it is acknowledged. */
  async #send(lines: readonly LogLine[]): Promise<void> {
    const { connection, clock, random } = this.#options;
    const logs = lines.map(({ at, level, output }) => ({ createdAt: timestamp(at), level: LEVELS[level], output }));
    const request = { logSourceId: this.#id, logs, batchId: uuidBytes(uuid()) };
    for (let refusals = 0; ; refusals += 1) {
      try {
        const { logLimitExceeded } = await connection.ask((api, signal) => api.batchCreateLogs(request, signal));
        if (logLimitExceeded) this.#limit.setFull();
        return;
      } catch (error) {
        if (error instanceof Stopped) throw error;
        if (refusals === MAX_REFUSALS) {
          log("daemon").error("log lines were refused: {error}", { error });
          this.#queue.noteDropped(lines.length);
          return;
        }
        await pause(clock, backoff(refusals, CEILING_MS, random));
      }
    }
  }
}
