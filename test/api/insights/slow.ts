// The figures of insights, recomputed as slowly and plainly as facts/platform 6.2 defines them: sets of minutes, and loops over them.
import { toRfc3339 } from "#base/clock.ts";
import { BUILTIN_APPS } from "#schema/workspaces/usage-app.ts";
import type { Minute, Month, Sample } from "./month.ts";

const HALF_HOUR = 1_800_000;
export type ReportQuery = { from: number; to: number; templates?: string[] | undefined };

const isWithin = (at: number, { from, to }: { from: number; to: number }): boolean => {
  const begins = Math.floor(at / HALF_HOUR) * HALF_HOUR;
  return begins >= from && begins < to;
};

/** Returns the minutes in the range and of the templates, each once. */
const minutesIn = (month: Month, requested: ReportQuery): Minute[] => {
  const once = new Map<string, Minute>();
  for (const one of month.minutes) {
    if (!isWithin(one.minute * 60_000, requested)) continue;
    if (requested.templates && !requested.templates.includes(one.template)) continue;
    once.set(`${one.user} ${one.template} ${one.app} ${one.minute}`, one);
  }
  return [...once.values()];
};

const distinct = <T>(values: T[]): T[] => [...new Set(values)].sort();
const templatesIn = (minutes: Minute[]): string[] => distinct(minutes.map(({ template }) => template));
const toBucket = ({ minute }: Minute): number => Math.floor(minute / 30);

/** Counts the minutes of one user: at most 30 in each bucket, regardless of the number of templates. */
const countCapped = (minutes: Minute[]): number => {
  let sum = 0;
  for (const inBucket of Map.groupBy(minutes, toBucket).values()) {
    let minutesOfBucket = 0;
    for (const ofTemplate of Map.groupBy(inBucket, ({ template }) => template).values()) {
      minutesOfBucket += new Set(ofTemplate.map(({ minute }) => minute)).size;
    }
    sum += Math.min(30, minutesOfBucket);
  }
  return sum;
};

const head = ({ from, to }: ReportQuery) => ({ start_time: toRfc3339(from), end_time: toRfc3339(to) });

export const computeActivity = (month: Month, requested: ReportQuery) => {
  const minutes = minutesIn(month, requested);
  const users = [...Map.groupBy(minutes, ({ user }) => user)].map(([user_id, own]) => ({
    user_id,
    username: month.people.find(({ id }) => id === user_id)?.username,
    avatar_url: "",
    seconds: countCapped(own) * 60,
    template_ids: templatesIn(own),
  }));
  users.sort((a, b) => (a.user_id < b.user_id ? -1 : 1));
  return { report: { ...head(requested), template_ids: templatesIn(minutes), users } };
};

/** Returns the value at a rank of sorted values, interpolated between two if needed. */
const rank = (sorted: number[], share: number): number => {
  if (sorted.length === 0) return -1;
  const at = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)] as number, sorted[Math.ceil(at)] as number];
  return below + (above - below) * (at - Math.floor(at));
};

export const computeLatency = (month: Month, requested: ReportQuery) => {
  const minutes = minutesIn(month, requested);
  const key = ({ template, at }: Sample): string => `${template} ${Math.floor(at / HALF_HOUR)}`;
  const byUser = Map.groupBy(month.samples, ({ user }) => user);
  const users = [...Map.groupBy(minutes, ({ user }) => user)].map(([user_id, own]) => {
    const samples = (byUser.get(user_id) ?? []).filter(
      (one) => isWithin(one.at, requested) && (!requested.templates || requested.templates.includes(one.template)),
    );
    const medians = [...Map.groupBy(samples, key).values()].map((inBucket) => {
      const sorted = inBucket.map(({ ms }) => ms).sort((a, b) => a - b);
      return rank(sorted, 0.5);
    });
    medians.sort((a, b) => a - b);
    return {
      user_id,
      username: month.people.find(({ id }) => id === user_id)?.username,
      avatar_url: "",
      latency_ms: { p50: rank(medians, 0.5), p95: rank(medians, 0.95) },
      template_ids: templatesIn(own),
    };
  });
  users.sort((a, b) => (a.user_id < b.user_id ? -1 : 1));
  return { report: { ...head(requested), template_ids: templatesIn(minutes), users } };
};

/** Counts buckets with use that directly follow one without. */
const countRuns = (minutes: Minute[]): number => {
  const buckets = new Set(minutes.map(toBucket));
  return [...buckets].filter((bucket) => !buckets.has(bucket - 1)).length;
};

export const computeTemplates = (month: Month, requested: ReportQuery & { edges: number[]; interval: string }) => {
  const { edges, interval } = requested;
  const minutes = minutesIn(month, requested);
  const interval_reports = edges.slice(0, -1).map((from, i) => {
    const part = { from, to: edges[i + 1] as number };
    const inside = minutes.filter(({ minute }) => isWithin(minute * 60_000, part));
    const active_users = new Set(inside.map(({ user }) => user)).size;
    return { ...head(part), interval, active_users, template_ids: templatesIn(inside) };
  });
  const app = (slug: string, display_name: string, icon: string, type: string) => {
    const own = minutes.filter((one) => one.app === slug);
    const byUser = [...Map.groupBy(own, ({ user }) => user).values()];
    const seconds = byUser.reduce((sum, one) => sum + countCapped(one) * 60, 0);
    const times_used = byUser.reduce((sum, one) => sum + countRuns(one), 0);
    return { slug, display_name, icon, type, seconds, times_used, template_ids: templatesIn(own) };
  };
  const code = app("code", "Code", "/icon/code.svg", "app");
  return {
    interval_reports,
    report: {
      ...head(requested),
      active_users: new Set(minutes.map(({ user }) => user)).size,
      apps_usage: [
        ...BUILTIN_APPS.map(({ slug, display_name, icon }) => app(slug, display_name, icon, "builtin")),
        ...(code.times_used > 0 ? [code] : []),
      ],
      parameters_usage: [],
      template_ids: templatesIn(minutes),
    },
  };
};

export const computeDaus = (month: Month, edges: number[], dates: string[], templates?: string[]) => {
  const all = minutesIn(month, { from: edges[0] as number, to: edges.at(-1) as number, templates });
  return {
    entries: dates.map((date, i) => {
      const part = { from: edges[i] as number, to: edges[i + 1] as number };
      const users = all.filter(({ minute }) => isWithin(minute * 60_000, part)).map(({ user }) => user);
      return { date, amount: new Set(users).size };
    }),
  };
};
