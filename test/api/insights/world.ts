// A server with a manual clock and a workspace with an agent, for tests of insights.
import type { Store } from "#db/engine/store.ts";
import { ApiError, type Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, type SeededAgent, seedAgent } from "#test/support/seed.ts";
import { openWorld, type World } from "#test/support/workspaces.ts";

/** A Wednesday, 09:30 UTC. */
export const START = Date.UTC(2030, 0, 16, 9, 30);

export type InsightsWorld = World & {
  readonly clock: ManualClock;
  readonly store: Store;
  readonly seeded: SeededAgent;
};

export const openInsights = async (start = START): Promise<InsightsWorld> => {
  const clock = new ManualClock(start);
  const world = await openWorld({ clock });
  const seeded = await seedAgent(world.server, { apps: [{ slug: "code", display_name: "Code", icon: "/c.svg" }] });
  const { store } = getContext(world.server);
  return { ...world, clock, store, seeded };
};

/** Returns the status of a failed call, else 200. */
export const awaitStatus = async (call: Promise<unknown>): Promise<number> =>
  (await catchApiError(call))?.status ?? 200;

export const catchApiError = async (call: Promise<unknown>): Promise<ApiError | undefined> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error !== undefined && !(error instanceof ApiError)) throw error;
  return error;
};

/** The day of START and the day before, in UTC. */
export const RANGE = "start_time=2030-01-15T00:00:00Z&end_time=2030-01-16T10:00:00Z";

export type Activity = { report: { template_ids: string[]; users: { user_id: string; seconds: number }[] } };
export type Latency = { report: { users: { user_id: string; latency_ms: { p50: number; p95: number } }[] } };
export type AppUsage = { slug: string; seconds: number; times_used: number; type: string; display_name: string };
export type Templates = {
  interval_reports?: { active_users: number; start_time: string; end_time: string; interval: string }[];
  report?: { active_users: number; apps_usage: AppUsage[]; parameters_usage: unknown[]; template_ids: string[] };
};

/** Returns seconds by slug, for used apps only. */
export const secondsIn = ({ report }: Templates): Record<string, number> =>
  Object.fromEntries((report?.apps_usage ?? []).flatMap(({ slug, seconds }) => (seconds > 0 ? [[slug, seconds]] : [])));

export const readAll = async (client: Client, range = RANGE) => ({
  activity: await client.get<Activity>(`/api/v2/insights/user-activity?${range}`),
  latency: await client.get<Latency>(`/api/v2/insights/user-latency?${range}`),
  templates: await client.get<Templates>(`/api/v2/insights/templates?${range}&interval=day`),
  daus: await client.get<{ entries: { amount: number; date: string }[] }>("/api/v2/insights/daus?tz_offset=0"),
});
