// Keeps the record of who used what: writes what was noted each minute and folds what is over every five. Made by the server's context;
// the only writer of usage rows.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { ALL_PARTS, type Parts } from "#base/parts.ts";
import type { ReportName } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { BUCKET_MS } from "#db/reports/usage/block.ts";
import type { ReportArgs } from "#db/reports/usage/reports.ts";
import { usageReport } from "#db/reports/usage/usage.ts";
import { UsageCollector, type Use } from "./collector.ts";
import { foldUsage } from "./folding.ts";

const FLUSH_MS = 60_000;
const FOLD_MS = 300_000;
/** Reports that wait or are made. */
const MAX_REPORTS = 32;

/** What an agent says of its connections. */
export type AgentReport = {
  readonly connection_count: number;
  readonly connection_median_latency_ms: number;
  readonly session_counts: Readonly<Record<string, number>>;
};

/** A report stands for the minutes since the one before it. */
const REPORT_MINUTES = 5;

export class Usage {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #parts: Parts;
  readonly #collector: UsageCollector;
  #ticking: Timer[] = [];
  #reports = 0;
  #made: Promise<void> = Promise.resolve();
  /** One after the other: what is folded must not be written at the same time. */
  #last: Promise<void> = Promise.resolve();
  /** Lets other nodes write what they have noted, where there are any; one that does not answer is not waited for. */
  flushOthers: () => Promise<void> = async () => {};

  /** Each node writes what it has seen; the first one folds. */
  constructor({ store, clock, parts = ALL_PARTS }: { store: Store; clock: Clock; parts?: Parts }) {
    this.#store = store;
    this.#clock = clock;
    this.#parts = parts;
    this.#collector = new UsageCollector(store, () => void this.flush());
  }

  /** Someone works; cheap, may be called for every chunk. */
  note(use: Omit<Use, "at">): void {
    this.#collector.note({ ...use, at: this.#clock.now() });
  }

  /** Open connections of an agent count as use by the owner of its workspace; without any nothing is noted (facts/platform 6.1). */
  noteReport(workspace_id: string, agent_id: string, report: AgentReport): void {
    const at = this.#clock.now();
    const open = Object.entries(report.session_counts).filter(([, count]) => count > 0);
    if (report.connection_count <= 0 && open.length === 0) return;
    const use = { workspace_id, agent_id, at, minutes: REPORT_MINUTES };
    if (open.length === 0) this.#collector.note(use);
    for (const [name] of open) this.#collector.note({ ...use, app: name.replaceAll("_", "-") });
    this.#collector.noteLatency(workspace_id, report.connection_median_latency_ms, at);
  }

  /** The way to an agent and back while someone works through it, in milliseconds; undefined when nobody can tell. */
  noteRoundTrip(workspace_id: string, ms: number | undefined): void {
    if (ms !== undefined) this.#collector.noteLatency(workspace_id, Math.ceil(ms), this.#clock.now());
  }

  /**
   * The JSON text of a report about all that was noted until now. Reports are made one after the other, so that they leave a reader to
   * the lists. 503 when too many wait.
   */
  async report(name: ReportName, args: ReportArgs): Promise<string> {
    if (this.#reports >= MAX_REPORTS) throw new AppError("overloaded", "Too many reports are waiting.");
    this.#reports += 1;
    const made = this.#made.then(async () => {
      await Promise.all([this.flush(), this.flushOthers()]);
      const [text = ""] = await this.#store.scan(usageReport(name, args));
      return text;
    });
    this.#made = made.then(
      () => {},
      () => {},
    );
    try {
      return await made;
    } finally {
      this.#reports -= 1;
    }
  }

  start(): void {
    this.#ticking = [
      this.#clock.every(FLUSH_MS, () => void this.flush()),
      this.#clock.every(FOLD_MS, () => void (this.#parts.isFirst && this.fold())),
    ];
  }

  /** Resolves when all that was noted is on disk. */
  flush(): Promise<void> {
    return this.#then(() => this.#collector.flush());
  }

  /** Folds what is over for half an hour: reports of agents reach back some minutes. */
  fold(): Promise<void> {
    return this.#then(() => foldUsage(this.#store, Math.floor(this.#clock.now() / BUCKET_MS) - 2));
  }

  /** No more ticks; what was noted is written. */
  async stop(): Promise<void> {
    for (const ticking of this.#ticking) ticking.cancel();
    await this.flush();
  }

  #then(run: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(run).catch((error) => {
      log("usage").warn("use could not be written or folded, it is tried again: {error}", { error });
    });
    return this.#last;
  }
}
