// Median and 95th percentile of a template's build times, from its latest finished builds. Cached briefly, because lists show every
// template.
import type { Clock } from "#base/clock.ts";
import type { Store } from "#db/engine/store.ts";
import { listBuildTimes } from "#db/templates/templates.ts";
import type { BuildTimeStats } from "#schema/templates/template.ts";

const TTL_MS = 30_000;

export class BuildTimes {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #cached = new Map<string, { until: number; stats: Promise<BuildTimeStats> }>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Returns the build times, at most half a minute old. */
  get(template_id: string): Promise<BuildTimeStats> {
    const now = this.#clock.monotonic();
    const cached = this.#cached.get(template_id);
    if (cached && cached.until > now) return cached.stats;
    for (const [id, { until }] of this.#cached) if (until <= now) this.#cached.delete(id);
    const stats = this.#read(template_id);
    this.#cached.set(template_id, { until: now + TTL_MS, stats });
    stats.catch(() => this.#cached.delete(template_id));
    return stats;
  }

  async #read(id: string): Promise<BuildTimeStats> {
    const rows = await this.#store.scan(listBuildTimes({ id }));
    const get = (transition: string) =>
      percentiles(rows.filter((row) => row.transition === transition).map((row) => Number(row.milliseconds)));
    return { start: get("start"), stop: get("stop"), delete: get("delete") };
  }
}

/** Returns nearest-rank percentiles; null without values. */
const percentiles = (values: readonly number[]): { P50: number | null; P95: number | null } => {
  const sorted = values.toSorted((a, b) => a - b);
  const getPercentile = (share: number): number | null =>
    sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { P50: getPercentile(0.5), P95: getPercentile(0.95) };
};
