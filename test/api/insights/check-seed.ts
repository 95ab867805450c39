// Creates a month of usage from a seed and compares every figure of every report with its slow recomputation. Tests use a few seeds; `bun
// test/api/insights/check-seed.ts 200` runs many and prints the seed that fails; test/README.md has the last result.
import { expect } from "bun:test";
import { openLocalStore } from "#db/engine/local.ts";
import type { ReportName } from "#db/engine/sql.ts";
import type { ReportArgs } from "#db/reports/usage/reports.ts";
import { usageReport } from "#db/reports/usage/usage.ts";
import { randomFrom } from "#test/support/random.ts";
import { tempDirectory } from "#test/support/server.ts";
import { DAY, DAYS, makeMonth, NOW } from "./month.ts";
import { computeActivity, computeDaus, computeLatency, computeTemplates } from "./slow.ts";

const HOUR = 3_600_000;
/** UTC offsets in hours: whole hours, half hours and quarters. */
const ZONE_OFFSETS = [0, 5.5, -5, 5.75, 1];

export const checkSeed = async (seed: number, people = 500, offsets = ZONE_OFFSETS.length): Promise<void> => {
  using directory = tempDirectory();
  const store = openLocalStore({
    directory: directory.path,
    cacheMb: 16,
    now: NOW,
    fatal: (error) => {
      throw error;
    },
  });
  try {
    const month = await makeMonth(store, seed, people);
    const random = randomFrom(seed + 1_000_000);
    const drawBelow = (n: number): number => Math.floor(random() * n);
    const report = async (name: ReportName, args: ReportArgs): Promise<unknown> =>
      JSON.parse((await store.scan(usageReport(name, args)))[0] as string);
    const otherOffsets = ZONE_OFFSETS.slice(1).sort(() => random() - 0.5);
    for (const hours of [0, ...otherOffsets.slice(0, offsets - 1)]) {
      const midnight = Math.floor((NOW + hours * HOUR) / DAY) * DAY - hours * HOUR;
      const lengthDays = hours === 0 ? DAYS : 7 + drawBelow(DAYS - 7);
      const isOpen = hours === 0 || random() < 0.3;
      const to = isOpen ? Math.floor(NOW / HOUR) * HOUR + HOUR : midnight - drawBelow(DAYS - lengthDays + 1) * DAY;
      const from = (isOpen ? midnight : to) - lengthDays * DAY;
      const templates = hours === 0 ? undefined : month.templates.filter(() => random() < 0.6);
      const requested = { from, to, templates: templates?.length ? templates : undefined };
      const interval = random() < 0.5 ? "day" : "week";
      const edges: number[] = [];
      for (let edge = from; edge < to; edge += interval === "day" ? DAY : 7 * DAY) edges.push(edge);
      edges.push(to);
      const args = { ...requested, open: to > NOW, interval, edges };
      expect(await report("user_activity", args)).toEqual(computeActivity(month, requested));
      expect(await report("user_latency", args)).toEqual(computeLatency(month, requested));
      expect(await report("templates", args)).toEqual(computeTemplates(month, { ...requested, interval, edges }));
      const days = Array.from({ length: 61 }, (_, i) => midnight - (60 - i) * DAY);
      const dates = days.map((at) => new Date(at + hours * HOUR).toISOString().slice(0, 10));
      const dayEdges = [...days, midnight + DAY];
      const dayArgs = { from: days[0] as number, to: midnight + DAY, open: true, edges: dayEdges, dates };
      expect(await report("daus", { ...dayArgs, templates: requested.templates, tz_hour_offset: hours })).toEqual({
        ...computeDaus(month, dayEdges, dates, requested.templates),
        tz_hour_offset: hours,
      });
    }
  } finally {
    await store.close();
  }
};

if (import.meta.main) {
  const [count = "200", first = "1"] = process.argv.slice(2);
  for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
    try {
      await checkSeed(seed);
    } catch (error) {
      process.stderr.write(`seed ${seed}: ${error}\n`);
      process.exit(1);
    }
    if (seed % 10 === 0) process.stdout.write(`${seed} seeds agree\n`);
  }
}
