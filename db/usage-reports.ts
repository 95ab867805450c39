// The reports of insights (facts/platform 6.2), computed and written as JSON in a reader Worker, so that the main thread only passes a
// text on. Every report takes plain data and answers the text of its body.
import type { Database } from "bun:sqlite";
import { rfc3339 } from "#base/clock.ts";
import { KEY_KINDS } from "./usage.ts";
import { AppFigures } from "./usage-apps.ts";
import { ANY, anyIn, BLOCK, BUCKET_MS, MOST } from "./usage-block.ts";
import { parametersUsage } from "./usage-parameters.ts";
import { type Span, walk } from "./usage-walk.ts";

/** What a report is asked for. Times in milliseconds, [from, to). */
export type ReportArgs = {
  readonly from: number;
  readonly to: number;
  /** It ends after now. */
  readonly open?: boolean | undefined;
  /** Ids; absent: all templates. */
  readonly templates?: readonly string[] | undefined;
  /** Where days or weeks begin, and the end of the last. */
  readonly edges?: readonly number[] | undefined;
  readonly interval?: string | undefined;
  /** Days as they are called, one for each interval. */
  readonly dates?: readonly string[] | undefined;
  readonly tz_hour_offset?: number | undefined;
  readonly sections?: readonly string[] | undefined;
};

/** The bucket that begins at or after a time: a bucket belongs to the day in which it begins. */
const bucketAt = (ms: number): number => Math.ceil(ms / BUCKET_MS);

const keysOf = (db: Database, kind: number): Map<number, string> =>
  new Map(db.query("select key, name from usage_keys where kind = ?").values(kind) as [number, string][]);

type Scope = { readonly span: Span; readonly templates: ReadonlyMap<number, string> };

const scopeOf = (db: Database, args: ReportArgs): Scope => {
  const templates = keysOf(db, KEY_KINDS.template);
  const wanted = args.templates && new Set(args.templates);
  const keys = wanted && new Set([...templates].flatMap(([key, id]) => (wanted.has(id) ? [key] : [])));
  // Nothing has been used yet after now: a range that reaches there takes its last block whole.
  const to = args.open ? Math.ceil(bucketAt(args.to) / BLOCK) * BLOCK : bucketAt(args.to);
  return { span: { from: bucketAt(args.from), to, templates: keys }, templates };
};

const idsOf = ({ templates }: Scope, keys: Iterable<number>): string[] =>
  [...keys].flatMap((key) => templates.get(key) ?? []).sort();

type Person = { readonly id: string; readonly username: string; readonly avatar_url: string };

/** Rows about users by the user's id; whoever is unknown is left out. */
const byUser = <T>(db: Database, rows: ReadonlyMap<number, T>, show: (person: Person, row: T) => object): object[] => {
  const people = db
    .query(
      "select k.key, u.id, u.username, u.avatar_url from usage_keys k join users u on u.id = k.name where k.kind = ? order by u.id",
    )
    .values(KEY_KINDS.user) as [number, string, string, string][];
  return people.flatMap(([key, id, username, avatar_url]) => {
    const row = rows.get(key);
    return row === undefined ? [] : [show({ id, username, avatar_url }, row)];
  });
};

const times = ({ from, to }: ReportArgs) => ({ start_time: rfc3339(from), end_time: rfc3339(to) });

/** Seconds of any use by user: a minute counts once, and no bucket has more than 30. */
const userActivity = (db: Database, args: ReportArgs): string => {
  const scope = scopeOf(db, args);
  const used = new Map<number, { minutes: number; templates: Set<number> }>();
  walk(db, scope.span, (group) => {
    const { user, low, high, rows } = group;
    let minutes = 0;
    const found: number[] = [];
    if (group.covered && group.apart) {
      for (const { digest, template } of rows) {
        minutes += digest.minutes;
        found.push(template);
      }
    } else {
      const sums = rows.length > 1 ? new Uint16Array(high) : undefined;
      for (const { detail, template } of rows) {
        let own = 0;
        detail().each(ANY, low, high, (i, one) => {
          own += one;
          if (sums) sums[i] = (sums[i] as number) + one;
        });
        if (own > 0) found.push(template);
        if (!sums) minutes = own;
      }
      if (sums) for (let i = low; i < high; i++) minutes += Math.min(MOST, sums[i] as number);
    }
    if (minutes === 0) return;
    const row = used.get(user) ?? { minutes: 0, templates: new Set() };
    row.minutes += minutes;
    for (const template of found) row.templates.add(template);
    used.set(user, row);
  });
  const users = byUser(db, used, ({ id, username, avatar_url }, { minutes, templates }) => ({
    ...{ avatar_url, seconds: minutes * 60, template_ids: idsOf(scope, templates), user_id: id, username },
  }));
  const all = new Set([...used.values()].flatMap(({ templates }) => [...templates]));
  return JSON.stringify({ report: { ...times(args), template_ids: idsOf(scope, all), users } });
};

/** Percentiles over the buckets' latencies; -1 for those who used something without any. */
const userLatency = (db: Database, args: ReportArgs): string => {
  const scope = scopeOf(db, args);
  const seen = new Map<number, { counts: Counts; templates: Set<number> }>();
  walk(db, scope.span, (group) => {
    const { user, low, high, rows } = group;
    for (const { digest, template, detail } of rows) {
      if (!anyIn(digest.bits, low, high)) continue;
      const row = seen.get(user) ?? { counts: new Counts(), templates: new Set<number>() };
      seen.set(user, row);
      row.templates.add(template);
      const { counts } = row;
      if (group.covered) digest.eachLatency((value, count) => counts.add(value, count));
      else detail().eachLatency(low, high, (_, value) => counts.add(value, 1));
    }
  });
  const users = byUser(db, seen, ({ id, username, avatar_url }, { counts, templates }) => {
    const [p50, p95] = percentiles(counts.all, [0.5, 0.95]);
    const latency_ms = { p50, p95 };
    return { avatar_url, latency_ms, template_ids: idsOf(scope, templates), user_id: id, username };
  });
  const all = new Set([...seen.values()].flatMap(({ templates }) => [...templates]));
  return JSON.stringify({ report: { ...times(args), template_ids: idsOf(scope, all), users } });
};

/** How often each value came: most are small, and there are many. */
class Counts {
  readonly #small = new Uint32Array(SMALL);
  readonly #large = new Map<number, number>();

  add(value: number, count: number): void {
    if (value < SMALL) this.#small[value] = (this.#small[value] as number) + count;
    else this.#large.set(value, (this.#large.get(value) ?? 0) + count);
  }

  get all(): Map<number, number> {
    const all = new Map(this.#large);
    for (const [value, count] of this.#small.entries()) if (count > 0) all.set(value, count);
    return all;
  }
}
const SMALL = 1024;

/** Of half milliseconds with their counts, in milliseconds, between two values where the rank is between them; -1 of none. */
export const percentiles = (counts: ReadonlyMap<number, number>, ranks: readonly number[]): number[] => {
  const sorted = [...counts].sort(([a], [b]) => a - b);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return ranks.map(() => -1);
  const at = (index: number): number => {
    let before = 0;
    for (const [value, count] of sorted) {
      before += count;
      if (index < before) return value / 2;
    }
    return 0;
  };
  return ranks.map((rank) => {
    const exact = rank * (total - 1);
    const [below, above] = [at(Math.floor(exact)), at(Math.ceil(exact))];
    return below + (above - below) * (exact - Math.floor(exact));
  });
};

/** Distinct users of each interval, and the templates they used there. */
class Intervals {
  readonly #edges: number[];
  readonly users: Uint32Array;
  readonly templates: Set<number>[];
  /** User -> the last interval in which they were counted: blocks come in order, and an interval may reach over two. */
  readonly #counted = new Map<number, number>();

  constructor(edges: readonly number[]) {
    this.#edges = edges.map(bucketAt);
    this.users = new Uint32Array(Math.max(0, edges.length - 1));
    this.templates = Array.from({ length: this.users.length }, () => new Set());
  }

  add(user: number, start: number, rows: readonly { template: number; bits: Uint32Array }[], high: number): void {
    const edges = this.#edges;
    let counted = this.#counted.get(user) ?? -1;
    let i = this.#indexAt(start);
    for (; i < this.users.length && (edges[i] as number) - start < high; i++) {
      const from = Math.max(0, (edges[i] as number) - start);
      const to = Math.min(high, (edges[i + 1] as number) - start);
      for (const { template, bits } of rows) {
        if (!anyIn(bits, from, to)) continue;
        (this.templates[i] as Set<number>).add(template);
        if (counted < i) {
          counted = i;
          this.users[i] = (this.users[i] as number) + 1;
        }
      }
    }
    this.#counted.set(user, counted);
  }

  /** The interval that holds a bucket, or the first after it. */
  #indexAt(bucket: number): number {
    let [low, high] = [0, this.users.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#edges[middle + 1] as number) <= bucket) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Active users by interval and in all, use of apps, and values of parameters. */
const templateReports = (db: Database, args: ReportArgs): string => {
  const scope = scopeOf(db, args);
  const { edges = [], interval = "", sections = ["interval_reports", "report"] } = args;
  const [wantsIntervals, wantsReport] = [sections.includes("interval_reports"), sections.includes("report")];
  const intervals = new Intervals(wantsIntervals ? edges : []);
  const apps = new AppFigures(db);
  const active = new Set<number>();
  const used = new Set<number>();
  walk(db, scope.span, (group) => {
    const { user, low, high, start } = group;
    const rows = group.rows.map(({ template, digest }) => ({ template, bits: digest.bits }));
    intervals.add(user, start, rows, high);
    if (!wantsReport) return;
    const found = rows.filter(({ bits }) => anyIn(bits, low, high));
    if (found.length === 0) return;
    active.add(user);
    for (const { template } of found) used.add(template);
    apps.add(group);
  });
  const interval_reports = Array.from(intervals.users, (active_users, i) => ({
    active_users,
    end_time: rfc3339(edges[i + 1] as number),
    interval,
    start_time: rfc3339(edges[i] as number),
    template_ids: idsOf(scope, intervals.templates[i] as Set<number>),
  }));
  const report = {
    active_users: active.size,
    apps_usage: apps.show((keys) => idsOf(scope, keys)),
    ...times(args),
    ...(wantsReport ? { parameters_usage: parametersUsage(db, args) } : {}),
    template_ids: idsOf(scope, used),
  };
  return JSON.stringify({
    ...(wantsIntervals ? { interval_reports } : {}),
    ...(wantsReport ? { report } : {}),
  });
};

/** Distinct users of each day. */
const daus = (db: Database, args: ReportArgs): string => {
  const { edges = [], dates = [], tz_hour_offset } = args;
  const intervals = new Intervals(edges);
  walk(db, scopeOf(db, args).span, (group) => {
    const rows = group.rows.map(({ template, digest }) => ({ template, bits: digest.bits }));
    intervals.add(group.user, group.start, rows, group.high);
  });
  const entries = dates.map((date, i) => ({ amount: intervals.users[i] ?? 0, date }));
  return JSON.stringify({ entries, tz_hour_offset });
};

export const REPORTS = {
  templates: templateReports,
  user_activity: userActivity,
  user_latency: userLatency,
  daus,
} as const;

export type ReportName = keyof typeof REPORTS;
