// Current problems of the database: a damaged file or a full disk. Each problem is logged once a minute with a count, so callers do not log
// it again (`CommitError.isReported`).
import { systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type Damage, describeDamage, NEXT_STEP } from "./damage.ts";
import { CommitError, type Trouble } from "./store.ts";

const LOG_INTERVAL_MS = 60_000;
/** How often a write to a full disk is retried. */
const PROBE_INTERVAL_MS = 5_000;

export type TroubleDeps = {
  /** Checks the database without blocking the event loop. */
  check(): Promise<Damage | undefined>;
  /** Makes a small write. */
  probe(): Promise<void>;
};

export class TroubleWatch {
  readonly #deps: TroubleDeps;
  #current: Trouble | undefined;
  #count = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(deps: TroubleDeps) {
    this.#deps = deps;
  }

  get current(): Trouble | undefined {
    return this.#current;
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Records a rejected write. */
  onRefused(error: CommitError): void {
    if (error.reason !== "full") return;
    error.isReported = true;
    if (!this.#current) {
      this.#current = { kind: "full", since: systemClock.now() };
      this.#probeSoon();
    }
    this.#logThrottled("the disk is full: nothing is saved. Free space on the disk of the data directory");
  }

  /** Records a successful write. */
  onWritten(): void {
    if (this.#current?.kind !== "full") return;
    log("db").info("the disk takes writes again", { refused: this.#count });
    this.#current = undefined;
    this.#count = 0;
    this.#loggedAt = Number.NEGATIVE_INFINITY;
  }

  /** Records damage found by a read. Returns the error for its caller. */
  onDamaged(cause: unknown): CommitError {
    const error = new CommitError("damaged", "the database is damaged", { cause });
    error.isReported = true;
    if (this.#current?.kind !== "damaged") {
      this.#current = { kind: "damaged", since: systemClock.now() };
      void this.#findDamage();
    }
    this.#logThrottled(`the database is damaged. ${NEXT_STEP}`, {
      reason: cause instanceof Error ? cause.message : cause,
    });
    return error;
  }

  async #findDamage(): Promise<void> {
    const damage = await this.#deps
      .check()
      .catch((error: Error): Damage => ({ problems: [error.message], tables: [] }));
    const current = this.#current;
    if (!damage || current?.kind !== "damaged" || this.#isClosed) return;
    this.#current = { ...current, tables: damage.tables };
    log("db").error(`the database is ${describeDamage(damage)}`, { problems: damage.problems.slice(0, 10) });
  }

  #probeSoon(): void {
    systemClock.after(PROBE_INTERVAL_MS, () => {
      if (this.#isClosed || this.#current?.kind !== "full") return;
      // The write itself records its result.
      this.#deps.probe().catch(() => this.#probeSoon());
    });
  }

  #logThrottled(message: string, properties: Record<string, unknown> = {}): void {
    this.#count++;
    const now = systemClock.monotonic();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    log("db").error(message, { ...properties, refused: this.#count });
  }
}
