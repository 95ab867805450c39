// The rows about many workspaces: lists of a large deployment, many parallel builds, many idle watchers. Only the product is measured: one
// read is compared with another, or a figure with its target.
import { type SeededMany, seedMany } from "#test/support/seed-many.ts";
import type { PlanLine } from "../driver.ts";
import { residentMiB } from "../machine.ts";
import { type Product, startProductWith } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row, range } from "../row.ts";
import { awaitAll, makeBuilds, watchBuilds } from "../workspaces.ts";

/** Starts a product with the data of a large deployment. The rows are written while it is stopped. */
async function startLarge(bench: Bench, workspaces: number): Promise<{ product: Product; seeded: SeededMany }> {
  const [product, seeded] = await startProductWith(bench, (store, now) => seedMany(store, now, { workspaces }));
  return { product, seeded };
}

const SEARCHES = { owner: "owner:owner-7", status: "status:running", name: "name:ws-0123" };

export const list: Row = {
  name: "list",
  title:
    "Lists of 50 out of 10,000 workspaces of 200 templates, one after the other; compared with reading one by its ID",
  sides: ["product"],
  maxRounds: 3,
  async measure(bench) {
    const { product, seeded } = await startLarge(bench, 10_000);
    await using _ = product;
    const token = product.adminToken;
    const read = async (path: string) => {
      const line: PlanLine = { kind: "get", path, token };
      return await bench.driver.load(product.port, [line], { secs: bench.seconds, warm: 1 });
    };
    const singleRead = await read(`/api/v2/workspaces/${seeded.workspaces[100]}`);
    const fresh = await measureAfterChanges(product, seeded);
    const figures: Figures = {
      ...fresh,
      one_p50: singleRead.get.p50,
      one_p99: singleRead.get.p99,
      faults: singleRead.errors,
    };
    for (const [key, q] of Object.entries(SEARCHES)) {
      const result = await read(`/api/v2/workspaces?limit=50&q=${encodeURIComponent(q)}`);
      figures[`${key}_p50`] = result.get.p50;
      figures[`${key}_p99`] = result.get.p99;
      figures[`${key}_ratio`] = result.get.p99 / singleRead.get.p99;
      figures.faults = (figures.faults ?? 0) + result.errors;
    }
    return figures;
  },
  figures: {
    one_p50: "one by id p50 ms",
    one_p99: "one by id p99 ms",
    owner_p50: "by owner p50 ms",
    owner_p99: "by owner p99 ms",
    status_p50: "by status p50 ms",
    status_p99: "by status p99 ms",
    name_p50: "by part of the name p50 ms",
    name_p99: "by part of the name p99 ms",
    fresh_p50: "by owner, just changed, p50 ms",
    fresh_p99: "by owner, just changed, p99 ms",
    faults: "faults",
  },
  verdicts: (["owner", "status", "name"] as const).map((key) => ({
    what: `list by ${key}, p99 / p99 of reading one by id`,
    target: "<= 3",
    value: productFigure(`${key}_ratio`),
    bound: 3,
    better: "lower" as const,
    unit: "ratio" as const,
  })),
};

/** Measures lists that are read directly after a change, so that no cached response can be used. The times are those of this process. */
async function measureAfterChanges(product: Product, { workspaces }: SeededMany): Promise<Figures> {
  const headers = { "content-type": "application/json", "Service-Session-Token": product.adminToken };
  const times: number[] = [];
  for (let i = 0; i < 100; i++) {
    const body = JSON.stringify({ ttl_ms: 3_600_000 + i * 60_000 });
    const changed = await fetch(`${product.url}/api/v2/workspaces/${workspaces[7]}/ttl`, {
      method: "PUT",
      headers,
      body,
    });
    if (!changed.ok) throw new Error(`PUT ttl: ${changed.status} ${await changed.text()}`);
    const startedAt = performance.now();
    await (await fetch(`${product.url}/api/v2/workspaces?limit=50&q=owner:owner-7`, { headers })).text();
    times.push(performance.now() - startedAt);
  }
  times.sort((a, b) => a - b);
  return { fresh_p50: times[50] ?? Number.NaN, fresh_p99: times[98] ?? Number.NaN };
}

const BUILDS = 200;

export const builds: Row = {
  name: "builds",
  title:
    "200 builds started concurrently on the provisioner echo, each workspace with a watcher, while GET /healthz is sent every ms",
  sides: ["product"],
  maxRounds: 3,
  async measure(bench) {
    const { product, seeded } = await startLarge(bench, 1_000);
    await using _ = product;
    // Workspaces that are not starting, because their latest build has ended.
    const ids = seeded.workspaces.filter((_, i) => i % 50 !== 49).slice(0, BUILDS);
    await using watchers = await watchBuilds(product, ids);
    const line: PlanLine = { kind: "probe", path: "/healthz", token: "none" };
    const secs = Math.max(bench.seconds, 2);
    const before = await bench.driver.load(product.port, [line], { secs: 1, warm: 0, probe_us: 1000 });
    const probing = bench.driver.load(product.port, [line], { secs, warm: 0, probe_us: 1000 });
    await Bun.sleep(200);
    const startedAt = performance.now();
    const accepted = await makeBuilds(product, ids);
    const results = await awaitAll(watchers, 30_000);
    const all_ms = performance.now() - startedAt;
    const { probe } = await probing;
    return {
      accepted,
      ...results,
      all_ms,
      calm_p99: before.probe.p99,
      loop_p50: probe.p50,
      loop_p99: probe.p99,
      loop_max: probe.max,
    };
  },
  figures: {
    accepted: "builds accepted",
    saw_running: "watchers that saw it running",
    saw_pending: "watchers that saw it pending",
    out_of_order: "changes out of order",
    all_ms: "until all are seen ms",
    calm_p99: "GET /healthz p99 ms before",
    loop_p50: "GET /healthz p50 ms",
    loop_p99: "GET /healthz p99 ms",
    loop_max: "GET /healthz longest ms",
  },
  verdicts: [
    {
      what: "watchers that saw their build run",
      target: "200 of 200",
      value: productFigure("saw_running"),
      bound: BUILDS,
      better: "higher",
      unit: "count",
    },
    {
      what: "changes seen out of order or of another build",
      target: "0",
      value: productFigure("out_of_order"),
      bound: 0,
      better: "lower",
      unit: "count",
    },
    {
      what: "event-loop delay during the run, as a GET every ms sees it, p99",
      target: "< 10 ms",
      value: productFigure("loop_p99"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
  ],
};

const WATCHERS = 2_000;

export const watchers: Row = {
  name: "watchers",
  title: "2,000 idle watchers of 2,000 workspaces",
  sides: ["product"],
  maxRounds: 2,
  async measure(bench) {
    const { product, seeded } = await startLarge(bench, WATCHERS);
    await using _ = product;
    const token = product.adminToken;
    const plan = seeded.workspaces.map((id): PlanLine => {
      return { kind: "follow", agent: 0, path: `/api/v2/workspaces/${id}/watch-ws`, token };
    });
    // Memory that every server allocates for its first requests is not a cost of watching.
    const line: PlanLine = { kind: "get", path: `/api/v2/workspaces/${seeded.workspaces[0]}`, token };
    await bench.driver.load(
      product.port,
      range(16).map(() => line),
      { secs: 1, warm: 0 },
    );
    await Bun.sleep(2_000);
    const before = residentMiB(product.pid);
    await using _watchers = await bench.driver.hold(product.port, plan, WATCHERS);
    // An idle server collects the garbage of the new connections within 15 seconds.
    await Bun.sleep(20_000);
    const after = residentMiB(product.pid);
    return { before_mb: before, growth_mb: after - before, kib_each: ((after - before) * 1024) / WATCHERS };
  },
  figures: { before_mb: "memory before MB", growth_mb: "growth MB", kib_each: "KB each" },
  verdicts: [
    {
      what: "memory of 2,000 idle watchers",
      target: "<= 60 MB",
      value: productFigure("growth_mb"),
      bound: 60,
      better: "lower",
      unit: "MB",
    },
  ],
};
