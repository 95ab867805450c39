// The insights reports (facts/platform 6.2), computed and serialized as JSON in a reader Worker, so that the main thread only passes text
// on. Each report takes plain data and returns the text of its body.
import { toRfc3339 } from "#base/clock.ts";
import type { ReadRows } from "../../engine/rows.ts";
import type { ReportName } from "../../engine/sql.ts";
import { Activity } from "./activity.ts";
import { AppFigures } from "./apps.ts";
import { BLOCK, BUCKET_MS } from "./block.ts";
import { Intervals } from "./intervals.ts";
import { KEY_KINDS } from "./keys.ts";
import { Latencies } from "./latencies.ts";
import { parametersUsage } from "./parameters.ts";
import type { PartCache } from "./parts.ts";
import { TemplateUse } from "./templates.ts";
import type { Span } from "./walk.ts";

/** A report's arguments. Times in milliseconds, [from, to). */
export type ReportArgs = {
  readonly from: number;
  readonly to: number;
  /** Whether the range ends in the future. */
  readonly open?: boolean | undefined;
  /** IDs; absent: all templates. */
  readonly templates?: readonly string[] | undefined;
  /** Where days or weeks begin, and the end of the last. */
  readonly edges?: readonly number[] | undefined;
  readonly interval?: string | undefined;
  /** Names of the days, one per interval. */
  readonly dates?: readonly string[] | undefined;
  readonly tz_hour_offset?: number | undefined;
  readonly sections?: readonly string[] | undefined;
};

/** Returns the bucket that begins at or after a time. A bucket belongs to the day in which it begins. */
const toBucket = (ms: number): number => Math.ceil(ms / BUCKET_MS);

const loadKeys = async (read: ReadRows, kind: number): Promise<Map<number, string>> =>
  new Map((await read("select key, name from usage_keys where kind = ?", [kind])) as [number, string][]);

type Scope = { readonly span: Span; readonly templates: ReadonlyMap<number, string> };

const loadScope = async (read: ReadRows, args: ReportArgs): Promise<Scope> => {
  const templates = await loadKeys(read, KEY_KINDS.template);
  const wanted = args.templates && new Set(args.templates);
  const keys = wanted && new Set([...templates].flatMap(([key, id]) => (wanted.has(id) ? [key] : [])));
  // The future has no usage yet, so a range that extends there includes its whole last block.
  const to = args.open ? Math.ceil(toBucket(args.to) / BLOCK) * BLOCK : toBucket(args.to);
  return { span: { from: toBucket(args.from), to, templates: keys }, templates };
};

const listIds = ({ templates }: Scope, keys: Iterable<number>): string[] =>
  [...keys].flatMap((key) => templates.get(key) ?? []).sort();

type Person = { readonly id: string; readonly username: string; readonly avatar_url: string };

/** Returns rows by user ID, without unknown users. */
const presentByUser = async <T>(
  read: ReadRows,
  rows: ReadonlyMap<number, T>,
  present: (person: Person, row: T) => object,
): Promise<object[]> => {
  const people = (await read(
    "select k.key, u.id, u.username, u.avatar_url from usage_keys k join users u on u.id = k.name where k.kind = ? order by u.id",
    [KEY_KINDS.user],
  )) as [number, string, string, string][];
  return people.flatMap(([key, id, username, avatar_url]) => {
    const row = rows.get(key);
    return row === undefined ? [] : [present({ id, username, avatar_url }, row)];
  });
};

const presentRange = ({ from, to }: ReportArgs) => ({ start_time: toRfc3339(from), end_time: toRfc3339(to) });

/** Returns rows by user, and the templates of all of them. */
const presentUsers = async <T extends { readonly templates: ReadonlySet<number> }>(
  read: ReadRows,
  args: ReportArgs,
  scope: Scope,
  used: ReadonlyMap<number, T>,
  present: (row: T) => object,
): Promise<string> => {
  const users = await presentByUser(read, used, ({ id, username, avatar_url }, row) => ({
    avatar_url,
    ...present(row),
    template_ids: listIds(scope, row.templates),
    user_id: id,
    username,
  }));
  const all = new Set<number>();
  for (const { templates } of used.values()) for (const template of templates) all.add(template);
  return JSON.stringify({ report: { ...presentRange(args), template_ids: listIds(scope, all), users } });
};

/** Seconds of any usage by user. */
const reportUserActivity = async (read: ReadRows, args: ReportArgs, cache: PartCache): Promise<string> => {
  const scope = await loadScope(read, args);
  const parts = await cache.load(read, scope.span, { name: "activity", details: true, make: () => new Activity() });
  return presentUsers(read, args, scope, Activity.joinParts(parts), ({ minutes }) => ({ seconds: minutes * 60 }));
};

/** Percentiles of the buckets' latencies; -1 for users without any. */
const reportUserLatency = async (read: ReadRows, args: ReportArgs, cache: PartCache): Promise<string> => {
  const scope = await loadScope(read, args);
  const parts = await cache.load(read, scope.span, { name: "latency", details: true, make: () => new Latencies() });
  return presentUsers(read, args, scope, Latencies.joinParts(parts), ({ counts }) => {
    const [p50, p95] = counts.computePercentiles([0.5, 0.95]);
    return { latency_ms: { p50, p95 } };
  });
};

/** Active users by interval and in total, usage of apps, and values of parameters. */
const reportTemplates = async (read: ReadRows, args: ReportArgs, cache: PartCache): Promise<string> => {
  const scope = await loadScope(read, args);
  const { interval = "", sections = ["interval_reports", "report"] } = args;
  const [wantsIntervals, wantsReport] = [sections.includes("interval_reports"), sections.includes("report")];
  const edges = wantsIntervals ? (args.edges ?? []) : [];
  const buckets = edges.map(toBucket);
  const parts = await cache.load(read, scope.span, {
    name: `templates ${buckets.join()} ${wantsReport}`,
    details: wantsReport,
    make: (from, to) =>
      new TemplateUse(new Intervals(buckets, from, to), wantsReport ? new AppFigures(from, to) : undefined),
  });
  const used = TemplateUse.joinParts(parts);
  const interval_reports = used.intervals.map(({ users, templates }, i) => ({
    active_users: users,
    end_time: toRfc3339(edges[i + 1] as number),
    interval,
    start_time: toRfc3339(edges[i] as number),
    template_ids: listIds(scope, templates),
  }));
  const report = async () => ({
    active_users: used.users,
    apps_usage: await used.apps.present(read, (keys) => listIds(scope, keys)),
    ...presentRange(args),
    parameters_usage: await parametersUsage(read, args),
    template_ids: listIds(scope, used.templates),
  });
  return JSON.stringify({
    ...(wantsIntervals ? { interval_reports } : {}),
    ...(wantsReport ? { report: await report() } : {}),
  });
};

/** Distinct users per day. */
const reportDailyUsers = async (read: ReadRows, args: ReportArgs, cache: PartCache): Promise<string> => {
  const { edges = [], dates = [], tz_hour_offset } = args;
  const buckets = edges.map(toBucket);
  const make = (from: number, to: number) => new Intervals(buckets, from, to);
  const days = Intervals.joinParts(
    await cache.load(read, (await loadScope(read, args)).span, { name: `days ${buckets.join()}`, make }),
  );
  const entries = dates.map((date, i) => ({ amount: days[i]?.users ?? 0, date }));
  return JSON.stringify({ entries, tz_hour_offset });
};

export const REPORTS = {
  templates: reportTemplates,
  user_activity: reportUserActivity,
  user_latency: reportUserLatency,
  daus: reportDailyUsers,
} as const satisfies Record<Exclude<ReportName, "audit">, unknown>;
