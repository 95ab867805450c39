// Distinct users of today and each of the last sixty days, for the deployment or one template (facts/platform 6.2).
import { toRfc3339 } from "#base/clock.ts";
import type { DomainContext } from "../context.ts";
import { DAY_MS, invalidQuery, makeFixedZone, parseOffset } from "./zones.ts";

const DAYS = 60;

/** Parses whole hours from UTC. Upstream clients may omit the offset; others get 400. */
export const parseDayOffset = (tz_offset: string | undefined, { compat }: { readonly compat: boolean }): number => {
  const hours = parseOffset(tz_offset) ?? (compat ? 0 : undefined);
  if (hours === undefined) throw invalidQuery("tz_offset", "is required");
  return hours;
};

/** Returns the response's text, for all templates or some. */
export const loadDaus = async (
  ctx: DomainContext,
  { hours, templates }: { hours: number; templates?: string[] },
): Promise<Response> => {
  const zone = makeFixedZone(hours);
  const today = zone.dayOf(ctx.clock.now());
  const days = Array.from({ length: DAYS + 1 }, (_, i) => today - DAYS + i);
  const edges = [...days, today + 1].map((day) => zone.startOf(day));
  const [from = 0, to = 0] = [edges[0], edges.at(-1)];
  const dates = days.map((day) => toRfc3339(day * DAY_MS).slice(0, 10));
  return jsonResponse(
    await ctx.usage.report("daus", { from, to, open: true, templates, edges, dates, tz_hour_offset: hours }),
  );
};

/** Wraps a text that is already JSON. */
export const jsonResponse = (text: string): Response =>
  new Response(text, { headers: { "content-type": "application/json; charset=utf-8" } });
