// Records usage: writes observations each minute and aggregates finished intervals every five minutes. Created by the server's context; the
// only writer of usage rows.
import type { Clock, Timer } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import type { ReportName } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { BUCKET_MS } from "#db/reports/usage/block.ts";
import type { ReportArgs } from "#db/reports/usage/reports.ts";
import { usageReport } from "#db/reports/usage/usage.ts";
import { type Chore, PeriodicChore } from "../runtime/chore.ts";
import type { Service } from "../runtime/service.ts";
import { UsageCollector, type Use } from "./collector.ts";
import { foldUsage } from "./folding.ts";

const FLUSH_INTERVAL_MS = 60_000;
const FOLD_INTERVAL_MS = 300_000;
/** Maximum number of reports that wait or run. */
const MAX_REPORTS = 32;

/** An agent's report of its connections. */
export type AgentReport = {
  readonly connection_count: number;
  readonly connection_median_latency_ms: number;
  readonly session_counts: Readonly<Record<string, number>>;
};

type Deps = {
  readonly store: Store;
  readonly clock: Clock;
  /** Makes other servers write their observations, without waiting for servers that do not respond. Default: there are no other servers. */
  readonly flushOthers?: () => Promise<unknown>;
};

/** A report covers the minutes since the previous one. */
const REPORT_INTERVAL_MINUTES = 5;

export class Usage implements Service {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #collector: UsageCollector;
  #ticking: Timer | undefined;
  #reports = 0;
  #report: Promise<void> = Promise.resolve();
  /** Serializes work, because rows must not be written while they are aggregated. */
  #last: Promise<void> = Promise.resolve();
  readonly #flushOthers: () => Promise<unknown>;
  /** Aggregates periodically. */
  readonly folding: Chore;

  constructor({ store, clock, flushOthers = async () => {} }: Deps) {
    this.#store = store;
    this.#clock = clock;
    this.#flushOthers = flushOthers;
    this.folding = new PeriodicChore({ clock, every_ms: FOLD_INTERVAL_MS, work: () => this.fold(), failed: warn });
    this.#collector = new UsageCollector(store, () => void this.flush());
  }

  /** Records activity; cheap enough to call for every chunk. */
  note(use: Omit<Use, "at">): void {
    this.#collector.note({ ...use, at: this.#clock.now() });
  }

  /** Counts an agent's open connections as usage by the workspace's owner; without connections nothing is recorded (facts/platform 6.1). */
  noteReport(workspace_id: string, agent_id: string, report: AgentReport): void {
    const at = this.#clock.now();
    const sessions = Object.entries(report.session_counts).filter(([, count]) => count > 0);
    if (report.connection_count <= 0 && sessions.length === 0) return;
    const use = { workspace_id, agent_id, at, minutes: REPORT_INTERVAL_MINUTES };
    if (sessions.length === 0) this.#collector.note(use);
    for (const [name] of sessions) this.#collector.note({ ...use, app: name.replaceAll("_", "-") });
    this.#collector.noteLatency(workspace_id, report.connection_median_latency_ms, at);
  }

  /** Records the round-trip time to an agent during use. `ms` is undefined if the time is unknown. */
  noteRoundTrip(workspace_id: string, ms: number | undefined): void {
    if (ms !== undefined) this.#collector.noteLatency(workspace_id, Math.ceil(ms), this.#clock.now());
  }

  /**
   * Returns a report of everything recorded so far as JSON text. Reports run one at a time, to leave a database reader for lists. Rejects
   * with 503 if too many are waiting.
   */
  async report(name: ReportName, args: ReportArgs): Promise<string> {
    if (this.#reports >= MAX_REPORTS) throw new AppError("overloaded", "Too many reports are waiting.");
    this.#reports += 1;
    const report = this.#report.then(async () => {
      await Promise.all([this.flush(), this.#flushOthers()]);
      const [text = ""] = await this.#store.scan(usageReport(name, args));
      return text;
    });
    this.#report = report.then(
      () => {},
      () => {},
    );
    try {
      return await report;
    } finally {
      this.#reports -= 1;
    }
  }

  start(): void {
    this.#ticking = this.#clock.every(FLUSH_INTERVAL_MS, () => void this.flush());
  }

  /** Resolves when all observations are on disk. */
  flush(): Promise<void> {
    return this.#enqueue(() => this.#collector.flush());
  }

  /** Aggregates intervals that ended more than half an hour ago, because reports of agents cover some minutes back. */
  fold(): Promise<void> {
    return this.#enqueue(() => foldUsage(this.#store, Math.floor(this.#clock.now() / BUCKET_MS) - 2));
  }

  release(): Promise<void> {
    return this.flush();
  }

  /** Stops the timer and writes the remaining observations. */
  async stop(): Promise<void> {
    this.#ticking?.cancel();
    await this.flush();
  }

  #enqueue(run: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(run).catch(warn);
    return this.#last;
  }
}

const warn = (error: unknown): void =>
  log("usage").warn("cannot write or aggregate usage, retrying: {error}", { error });
