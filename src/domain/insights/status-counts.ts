// Number of active, dormant and suspended users at the start of each of the last days, and at the next full hour if nothing changes
// (facts/platform 6.2).
import { toRfc3339 } from "#base/clock.ts";
import { listStatusChanges } from "#db/reports/usage/usage.ts";
import { USER_STATUSES } from "#schema/users/user.ts";
import type { DomainContext } from "../context.ts";
import { HOUR_MS, invalidQuery, makeFixedZone, makeNamedZone, parseOffset, type Zone } from "./zones.ts";

const DAYS = 60;

/** Returns the zone by name with daylight saving time, or by offset with 24-hour days, or UTC. Rejects with 400 when both are given. */
export const parseZone = ({ timezone, tz_offset }: { timezone?: string; tz_offset?: string }): Zone => {
  const hours = parseOffset(tz_offset);
  if (timezone === undefined || timezone === "") return makeFixedZone(hours ?? 0);
  if (hours !== undefined) throw invalidQuery("tz_offset", "must not be given together with timezone");
  return makeNamedZone(timezone);
};

export const loadStatusCounts = async (ctx: DomainContext, zone: Zone) => {
  const now = ctx.clock.now();
  const today = zone.dayOf(now);
  const points = Array.from({ length: DAYS + 1 }, (_, i) => zone.startOf(today - DAYS + i));
  points.push(Math.floor(now / HOUR_MS) * HOUR_MS + HOUR_MS);
  const [from = 0, to = 0] = [points[0], points.at(-1)];
  const changes = await ctx.store.scan(listStatusChanges({ from, to }));
  const counts = USER_STATUSES.map((status) => {
    const steps = changes.filter((one) => one.status === status).sort((a, b) => a.at - b.at);
    let [count, next] = [0, 0];
    const entries = points.map((point) => {
      for (; next < steps.length && (steps[next]?.at ?? 0) <= point; next++) count += steps[next]?.change ?? 0;
      return { count, date: toRfc3339(point) };
    });
    return [status, entries] as const;
  });
  return { status_counts: Object.fromEntries(counts) };
};
