// Build results and chat usage, compared with a slow recomputation from the same rows.
import { expect } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { BuildInsights, ChatInsights } from "#schema/insights.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { seedAgent, seedUser } from "#test/support/seed.ts";
import { createRandom, seedBuild, seedSpend } from "#test/support/seed-work.ts";
import { awaitStatus, openInsights, START } from "./world.ts";

const DAY = 86_400_000;
const FROM = Date.UTC(2030, 0, 9, -2);
const RANGE = "start_time=2030-01-09T00:00:00%2B02:00&end_time=2030-01-16T11:00:00%2B02:00";
const SEED = Number(process.env.SLIPWAY_TEST_SEED ?? 1);

const findPercentile = (values: readonly number[], share: number): number | null =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(share * values.length) - 1)] ?? null;

type SeededBuild = { at: number; outcome: "worked" | "failed" | "canceled"; durationMs: number; template: string };

const toFigures = (created: readonly SeededBuild[]) => {
  const times = created.filter(({ outcome }) => outcome === "worked").map(({ durationMs }) => durationMs);
  return {
    builds: created.length,
    failed: created.filter(({ outcome }) => outcome === "failed").length,
    canceled: created.filter(({ outcome }) => outcome === "canceled").length,
    p50_ms: findPercentile(times, 0.5),
    p95_ms: findPercentile(times, 0.95),
  };
};

testInProcess(`[IN-14] builds by day, week and template match their slow recomputation (seed ${SEED})`, async () => {
  await using world = await openInsights();
  const { server, store, admin, seeded } = world;
  const draw = createRandom(SEED);
  const otherAgent = await seedAgent(server);
  const rows = await Promise.all(
    [seeded, otherAgent].map(async ({ workspace_id }) => {
      const template = { sql: "select template_id from workspaces where id = ?", params: [workspace_id], map: String };
      const [template_id = ""] = await store.all(template);
      return { workspace_id, template_id };
    }),
  );
  const created: SeededBuild[] = [];
  for (let i = 0; i < 200; i++) {
    const { workspace_id, template_id } = rows[draw(2)] ?? { workspace_id: "", template_id: "" };
    const [at, durationMs] = [FROM - DAY + draw(9 * DAY), 1 + draw(90_000)];
    const outcome = (["worked", "worked", "worked", "failed", "canceled"] as const)[draw(5)] ?? "worked";
    const transition = draw(5) === 0 ? ("stop" as const) : ("start" as const);
    const isKeptReady = draw(8) === 0;
    const { organization_id } = seeded;
    const build = {
      workspace_id,
      organization_id,
      build_number: i + 100,
      at,
      duration_ms: durationMs,
      outcome,
      transition,
      isKeptReady,
    };
    await seedBuild(store, build);
    if (transition === "start" && !isKeptReady) created.push({ at, outcome, durationMs, template: template_id });
  }
  const to = FROM + 7 * DAY + 11 * 3_600_000;
  const computeBetween = (from: number, until: number) =>
    toFigures(created.filter(({ at }) => at >= from && at < Math.min(until, to)));
  const { report } = await admin.get<BuildInsights>(`/api/v2/insights/builds?${RANGE}&interval=day`);
  expect(report).toMatchObject(computeBetween(FROM, to));
  expect(report.intervals.length).toBe(8);
  for (const [day, interval] of report.intervals.entries()) {
    expect(interval).toMatchObject(computeBetween(FROM + day * DAY, FROM + (day + 1) * DAY));
    expect(Date.parse(interval.start_time)).toBe(FROM + day * DAY);
  }
  expect(report.templates.length).toBe(2);
  for (const { template_id, ...figures } of report.templates) {
    expect(figures).toMatchObject(
      toFigures(created.filter(({ at, template }) => template === template_id && at >= FROM && at < to)),
    );
  }
  const [first] = rows;
  const weeks = await admin.get<BuildInsights>(
    `/api/v2/insights/builds?${RANGE}&interval=week&template_ids=${first?.template_id}`,
  );
  const buildsOfFirst = created.filter(({ template }) => template === first?.template_id);
  expect(weeks.report.templates.map(({ template_id }) => template_id)).toEqual([first?.template_id ?? ""]);
  expect(weeks.report.intervals.map(({ builds }) => builds)).toEqual(
    [0, 7].map(
      (day) =>
        buildsOfFirst.filter(({ at }) => at >= FROM + day * DAY && at < Math.min(to, FROM + (day + 7) * DAY)).length,
    ),
  );
});

testInProcess(`[IN-15] chat usage by day and model matches its slow recomputation (seed ${SEED})`, async () => {
  await using world = await openInsights();
  const { store, admin } = world;
  const draw = createRandom(SEED + 1);
  const [people, models] = [Array.from({ length: 4 }, uuid), Array.from({ length: 3 }, uuid)];
  const chats = people.flatMap((user_id) => Array.from({ length: 3 }, () => ({ user_id, id: uuid() })));
  const rows = Array.from({ length: 300 }, () => {
    const { user_id, id } = chats[draw(chats.length)] ?? { user_id: "", id: "" };
    return {
      user_id,
      chat_id: id,
      root_chat_id: id,
      kind: "chat_turn" as const,
      model_config_id: models[draw(3)] ?? "",
      input_tokens: draw(1000),
      output_tokens: draw(1000),
      cache_read_tokens: draw(1000),
      cache_creation_tokens: draw(10),
      cost_micros: draw(4) === 0 ? null : draw(5000),
      created_at: FROM - DAY + draw(9 * DAY),
    };
  });
  await seedSpend(store, rows);
  const to = FROM + 7 * DAY + 11 * 3_600_000;
  const sum = (range: typeof rows) => {
    const total = (pick: (row: (typeof rows)[number]) => number) =>
      range.reduce((subtotal, row) => subtotal + pick(row), 0);
    return {
      total_cost_micros: total(({ cost_micros }) => cost_micros ?? 0),
      request_count: range.length,
      unpriced_request_count: range.filter(({ cost_micros }) => cost_micros === null).length,
      input_tokens: total((row) => row.input_tokens),
      output_tokens: total((row) => row.output_tokens),
      cache_read_tokens: total((row) => row.cache_read_tokens),
      cache_creation_tokens: total((row) => row.cache_creation_tokens),
    };
  };
  const toTotals = (range: typeof rows) => ({
    users: new Set(range.map(({ user_id }) => user_id)).size,
    chats: new Set(range.map(({ root_chat_id }) => root_chat_id)).size,
    ...sum(range),
  });
  const listBetween = (from: number, until: number) =>
    rows.filter(({ created_at }) => created_at >= from && created_at < Math.min(until, to));
  const { report } = await admin.get<ChatInsights>(`/api/v2/insights/chats?${RANGE}&interval=day`);
  expect(report).toMatchObject(toTotals(listBetween(FROM, to)));
  for (const [day, interval] of report.intervals.entries()) {
    expect(interval).toMatchObject(toTotals(listBetween(FROM + day * DAY, FROM + (day + 1) * DAY)));
  }
  expect(report.models.map(({ model_config_id }) => model_config_id).toSorted()).toEqual(models.toSorted());
  for (const { model_config_id, intervals, ...sums } of report.models) {
    const listOfModel = (from: number, until: number) =>
      listBetween(from, until).filter((row) => row.model_config_id === model_config_id);
    expect(sums).toMatchObject(sum(listOfModel(FROM, to)));
    expect(intervals.length).toBe(report.intervals.length);
    for (const [day, { tokens, total_cost_micros }] of intervals.entries()) {
      const { input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, ...rest } = sum(
        listOfModel(FROM + day * DAY, FROM + (day + 1) * DAY),
      );
      expect(tokens).toBe(input_tokens + output_tokens + cache_read_tokens + cache_creation_tokens);
      expect(total_cost_micros).toBe(rest.total_cost_micros);
    }
  }
});

testInProcess(
  "[IN-14] [IN-15] returns zeroes for an empty range, checks roles, and rejects unknown parameters",
  async () => {
    await using world = await openInsights(START);
    const { server, admin, seeded } = world;
    const emptyRange = "start_time=2029-01-09T00:00:00Z&end_time=2029-01-11T00:00:00Z&interval=day";
    const builds = await admin.get<BuildInsights>(`/api/v2/insights/builds?${emptyRange}`);
    expect(builds.report).toMatchObject({ builds: 0, p50_ms: null, templates: [], intervals: [{ builds: 0 }, {}] });
    const chats = await admin.get<ChatInsights>(`/api/v2/insights/chats?${emptyRange}`);
    expect(chats.report).toMatchObject({ users: 0, total_cost_micros: 0, models: [], intervals: [{ chats: 0 }, {}] });
    const fetchStatuses = async (...roles: string[]) => {
      const { token } = await seedUser(server, { roles, organization_id: seeded.organization_id });
      const client = admin.withToken(token);
      return Promise.all(
        ["builds", "chats"].map((name) => awaitStatus(client.get<unknown>(`/api/v2/insights/${name}?${emptyRange}`))),
      );
    };
    expect(await fetchStatuses()).toEqual([403, 403]);
    expect(await fetchStatuses("template-admin")).toEqual([200, 403]);
    expect(await fetchStatuses("auditor")).toEqual([200, 200]);
    for (const path of ["builds", "chats"]) {
      expect(await awaitStatus(admin.get<unknown>(`/api/v2/insights/${path}?${emptyRange}&colour=red`))).toBe(400);
      expect(
        await awaitStatus(admin.get<unknown>(`/api/v2/insights/${path}?${emptyRange.replace("day", "month")}`)),
      ).toBe(400);
    }
    expect(await awaitStatus(admin.get(`/api/v2/insights/chats?${emptyRange}&template_ids=${uuid()}`))).toBe(400);
  },
);
