// The insights row: every report over twelve months of use by 5,000 people, while another caller sends health checks. Only the product is
// measured; the targets are times.
import { seedMany } from "#test/support/seed-many.ts";
import { type Product, startProductWith } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row } from "../row.ts";
import { seedUsage } from "../seeds/seed-usage.ts";

const PEOPLE = Number(process.env.BENCH_PEOPLE ?? 5_000);
const DAY_MS = 86_400_000;
const ROUNDS = 40;

/** Starts a product with a year of use. The rows are written while it is stopped. */
async function startUsed(bench: Bench): Promise<Product> {
  const [product] = await startProductWith(bench, async (store, now) => {
    const { templates } = await seedMany(store, now, { workspaces: 5_000, templates: 20 });
    await seedUsage(store, now, { people: PEOPLE, templates });
  });
  return product;
}

const percentile = (times: readonly number[], share: number): number => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
};

const toRangeQuery = (now: number): string => {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return `start_time=${new Date(today - 365 * DAY_MS).toISOString()}&end_time=${new Date(today).toISOString()}`;
};

export const insights: Row = {
  name: "insights",
  title: `Reports over 12 months of use by ${PEOPLE.toLocaleString("en")} people, one after the other, while GET /healthz is measured`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    await using product = await startUsed(bench);
    const headers = { "Service-Session-Token": product.adminToken };
    const measureRequest = async (path: string): Promise<number> => {
      const startedAt = performance.now();
      const response = await fetch(product.url + path, { headers });
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      return performance.now() - startedAt;
    };
    const range = toRangeQuery(Date.now());
    const paths = {
      daus: "/api/v2/insights/daus?tz_offset=2",
      templates: `/api/v2/insights/templates?interval=day&${range}`,
      activity: `/api/v2/insights/user-activity?${range}`,
      latency: `/api/v2/insights/user-latency?${range}`,
      statuses: "/api/v2/insights/user-status-counts?timezone=Europe/Berlin",
    };
    const figures: Figures = {};
    const healthTimes: number[] = [];
    for (const [name, path] of Object.entries(paths)) {
      figures[`${name}_first`] = await measureRequest(path);
      let isDone = false;
      const healthChecks = (async () => {
        while (!isDone) healthTimes.push(await measureRequest("/healthz"));
      })();
      const times: number[] = [];
      for (let i = 0; i < ROUNDS; i++) times.push(await measureRequest(path));
      isDone = true;
      await healthChecks;
      figures[`${name}_p50`] = percentile(times, 0.5);
      figures[`${name}_p99`] = percentile(times, 0.99);
    }
    figures.alive_p50 = percentile(healthTimes, 0.5);
    figures.alive_p99 = percentile(healthTimes, 0.99);
    figures.delay = figures.alive_p99 - figures.alive_p50;
    return figures;
  },
  figures: {
    daus_first: "daus, the first time, ms",
    daus_p50: "daus p50 ms",
    daus_p99: "daus p99 ms",
    templates_first: "templates, the first time, ms",
    templates_p50: "templates p50 ms",
    templates_p99: "templates p99 ms",
    activity_first: "user activity, the first time, ms",
    activity_p50: "user activity p50 ms",
    activity_p99: "user activity p99 ms",
    latency_first: "user latency, the first time, ms",
    latency_p50: "user latency p50 ms",
    latency_p99: "user latency p99 ms",
    statuses_first: "statuses, the first time, ms",
    statuses_p50: "statuses p50 ms",
    statuses_p99: "statuses p99 ms",
    alive_p50: "GET /healthz during reports p50 ms",
    alive_p99: "GET /healthz during reports p99 ms",
    delay: "delay of other requests caused by reports: p99 - p50 ms",
  },
  verdicts: [
    ...(["daus", "templates", "activity", "latency", "statuses"] as const).map((name) => ({
      what: `insights: ${name}, p99`,
      target: "<= 300 ms",
      value: productFigure(`${name}_p99`),
      bound: 300,
      better: "lower" as const,
      unit: "ms" as const,
    })),
    {
      what: "insights: what others wait for reports, p99 - p50 of GET /healthz",
      target: "<= 10 ms",
      value: productFigure("delay"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
  ],
};
