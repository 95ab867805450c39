// What keeps the database from its work, as the store has last seen it: a damaged file, or a disk that is full. Either is in the log once a
// minute with a count, whoever has met it; their own lines about it are left out (`CommitError.isReported`).
import { systemClock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { type Damage, describeDamage, NEXT_STEP } from "./damage.ts";
import { CommitError, type Trouble } from "./store.ts";

const LOG_AGAIN_MS = 60_000;
/** How often a full disk is tried again. */
const PROBE_MS = 5_000;

export type TroubleDeps = {
  /** Looks through the database without holding up the loop. */
  check(): Promise<Damage | undefined>;
  /** Writes something small. */
  probe(): Promise<void>;
};

export class TroubleWatch {
  readonly #deps: TroubleDeps;
  #current: Trouble | undefined;
  #count = 0;
  #logged_at = Number.NEGATIVE_INFINITY;
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

  /** A write was refused. */
  refused(error: CommitError): void {
    if (error.reason !== "full") return;
    error.isReported = true;
    if (!this.#current) {
      this.#current = { kind: "full", since: systemClock.now() };
      this.#probeSoon();
    }
    this.#logAgain("the disk is full: nothing is saved. Free space on the disk of the data directory");
  }

  /** A write has reached the disk. */
  written(): void {
    if (this.#current?.kind !== "full") return;
    log("db").info("the disk takes writes again", { refused: this.#count });
    this.#current = undefined;
    this.#count = 0;
    this.#logged_at = Number.NEGATIVE_INFINITY;
  }

  /** A read has found damage. Returns what its caller is answered. */
  damaged(cause: unknown): CommitError {
    const error = new CommitError("damaged", "the database is damaged", { cause });
    error.isReported = true;
    if (this.#current?.kind !== "damaged") {
      this.#current = { kind: "damaged", since: systemClock.now() };
      void this.#findDamage();
    }
    this.#logAgain(`the database is damaged. ${NEXT_STEP}`, { reason: cause instanceof Error ? cause.message : cause });
    return error;
  }

  async #findDamage(): Promise<void> {
    const found = await this.#deps.check().catch((error: Error): Damage => ({ problems: [error.message], tables: [] }));
    const { current } = { current: this.#current };
    if (!found || current?.kind !== "damaged" || this.#isClosed) return;
    this.#current = { ...current, tables: found.tables };
    log("db").error(`the database is ${describeDamage(found)}`, { problems: found.problems.slice(0, 10) });
  }

  #probeSoon(): void {
    systemClock.after(PROBE_MS, () => {
      if (this.#isClosed || this.#current?.kind !== "full") return;
      // What becomes of it is heard as that of any other write.
      this.#deps.probe().catch(() => this.#probeSoon());
    });
  }

  #logAgain(message: string, properties: Record<string, unknown> = {}): void {
    this.#count++;
    const now = systemClock.monotonic();
    if (now - this.#logged_at < LOG_AGAIN_MS) return;
    this.#logged_at = now;
    log("db").error(message, { ...properties, refused: this.#count });
  }
}
