// Recomputes the figures of insights in the simple, slow way of facts/platform 6.2: sets of minutes, and loops over them.
import { toRfc3339 } from "#base/clock.ts";
import { BUILTIN_APPS } from "#schema/workspaces/usage-app.ts";
import type { Minute, Month, Sample } from "./month.ts";

const HALF_HOUR = 1_800_000;
export type ReportQuery = { from: number; to: number; templates?: string[] | undefined };

const isWithin = (at: number, { from, to }: { from: number; to: number }): boolean => {
  const bucketStart = Math.floor(at / HALF_HOUR) * HALF_HOUR;
  return bucketStart >= from && bucketStart < to;
};

/** Returns the minutes in the range and of the requested templates, without duplicates. */
const listMinutes = (month: Month, requested: ReportQuery): Minute[] => {
  const minutes = new Map<string, Minute>();
  for (const minute of month.minutes) {
    if (!isWithin(minute.minute * 60_000, requested)) continue;
    if (requested.templates && !requested.templates.includes(minute.template)) continue;
    minutes.set(`${minute.user} ${minute.template} ${minute.app} ${minute.minute}`, minute);
  }
  return [...minutes.values()];
};

const distinct = <T>(values: T[]): T[] => [...new Set(values)].sort();
const listTemplates = (minutes: Minute[]): string[] => distinct(minutes.map(({ template }) => template));
const toBucket = ({ minute }: Minute): number => Math.floor(minute / 30);

/** Counts the minutes of one user: at most 30 in each bucket, regardless of the number of templates. */
const countCapped = (minutes: Minute[]): number => {
  let sum = 0;
  for (const bucketMinutes of Map.groupBy(minutes, toBucket).values()) {
    let count = 0;
    for (const templateMinutes of Map.groupBy(bucketMinutes, ({ template }) => template).values()) {
      count += new Set(templateMinutes.map(({ minute }) => minute)).size;
    }
    sum += Math.min(30, count);
  }
  return sum;
};

const toRange = ({ from, to }: ReportQuery) => ({ start_time: toRfc3339(from), end_time: toRfc3339(to) });

export const computeActivity = (month: Month, requested: ReportQuery) => {
  const minutes = listMinutes(month, requested);
  const users = [...Map.groupBy(minutes, ({ user }) => user)].map(([user_id, userMinutes]) => ({
    user_id,
    username: month.people.find(({ id }) => id === user_id)?.username,
    avatar_url: "",
    seconds: countCapped(userMinutes) * 60,
    template_ids: listTemplates(userMinutes),
  }));
  users.sort((a, b) => (a.user_id < b.user_id ? -1 : 1));
  return { report: { ...toRange(requested), template_ids: listTemplates(minutes), users } };
};

/** Returns the value at a rank of sorted values, interpolated between two if needed. */
const interpolateRank = (sorted: number[], share: number): number => {
  if (sorted.length === 0) return -1;
  const position = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(position)] as number, sorted[Math.ceil(position)] as number];
  return below + (above - below) * (position - Math.floor(position));
};

export const computeLatency = (month: Month, requested: ReportQuery) => {
  const minutes = listMinutes(month, requested);
  const key = ({ template, at }: Sample): string => `${template} ${Math.floor(at / HALF_HOUR)}`;
  const byUser = Map.groupBy(month.samples, ({ user }) => user);
  const users = [...Map.groupBy(minutes, ({ user }) => user)].map(([user_id, userMinutes]) => {
    const samples = (byUser.get(user_id) ?? []).filter(
      ({ at, template }) => isWithin(at, requested) && (!requested.templates || requested.templates.includes(template)),
    );
    const medians = [...Map.groupBy(samples, key).values()].map((bucketMinutes) => {
      const sorted = bucketMinutes.map(({ ms }) => ms).sort((a, b) => a - b);
      return interpolateRank(sorted, 0.5);
    });
    medians.sort((a, b) => a - b);
    return {
      user_id,
      username: month.people.find(({ id }) => id === user_id)?.username,
      avatar_url: "",
      latency_ms: { p50: interpolateRank(medians, 0.5), p95: interpolateRank(medians, 0.95) },
      template_ids: listTemplates(userMinutes),
    };
  });
  users.sort((a, b) => (a.user_id < b.user_id ? -1 : 1));
  return { report: { ...toRange(requested), template_ids: listTemplates(minutes), users } };
};

/** Counts buckets with use that directly follow one without. */
const countRuns = (minutes: Minute[]): number => {
  const buckets = new Set(minutes.map(toBucket));
  return [...buckets].filter((bucket) => !buckets.has(bucket - 1)).length;
};

export const computeTemplates = (month: Month, requested: ReportQuery & { edges: number[]; interval: string }) => {
  const { edges, interval } = requested;
  const minutes = listMinutes(month, requested);
  const interval_reports = edges.slice(0, -1).map((from, i) => {
    const part = { from, to: edges[i + 1] as number };
    const inside = minutes.filter(({ minute }) => isWithin(minute * 60_000, part));
    const active_users = new Set(inside.map(({ user }) => user)).size;
    return { ...toRange(part), interval, active_users, template_ids: listTemplates(inside) };
  });
  const computeApp = (slug: string, display_name: string, icon: string, type: string) => {
    const appMinutes = minutes.filter((minute) => minute.app === slug);
    const byUser = [...Map.groupBy(appMinutes, ({ user }) => user).values()];
    const seconds = byUser.reduce((sum, userMinutes) => sum + countCapped(userMinutes) * 60, 0);
    const times_used = byUser.reduce((sum, userMinutes) => sum + countRuns(userMinutes), 0);
    return { slug, display_name, icon, type, seconds, times_used, template_ids: listTemplates(appMinutes) };
  };
  const code = computeApp("code", "Code", "/icon/code.svg", "app");
  return {
    interval_reports,
    report: {
      ...toRange(requested),
      active_users: new Set(minutes.map(({ user }) => user)).size,
      apps_usage: [
        ...BUILTIN_APPS.map(({ slug, display_name, icon }) => computeApp(slug, display_name, icon, "builtin")),
        ...(code.times_used > 0 ? [code] : []),
      ],
      parameters_usage: [],
      template_ids: listTemplates(minutes),
    },
  };
};

export const computeDaus = (month: Month, edges: number[], dates: string[], templates?: string[]) => {
  const minutes = listMinutes(month, { from: edges[0] as number, to: edges.at(-1) as number, templates });
  return {
    entries: dates.map((date, i) => {
      const part = { from: edges[i] as number, to: edges[i + 1] as number };
      const users = minutes.filter(({ minute }) => isWithin(minute * 60_000, part)).map(({ user }) => user);
      return { date, amount: new Set(users).size };
    }),
  };
};
