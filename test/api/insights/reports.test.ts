// The reports through the API: valid ranges, access, days, parameters and statuses.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { parametersUsage } from "#db/reports/usage/parameters.ts";
import { listTemplates } from "#db/templates/templates.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { awaitStatus, catchApiError, openInsights, RANGE, START, type Templates } from "./world.ts";

const DAY = 86_400_000;
const TEMPLATES = "/api/v2/insights/templates";
const REPORTS = [TEMPLATES, "/api/v2/insights/user-activity", "/api/v2/insights/user-latency"];

testInProcess("[IN-8] rejects a range that is not whole days, and names the parameter", async () => {
  await using world = await openInsights();
  const { admin } = world;
  const [start, end] = ["start_time=2030-01-15T00:00:00Z", "end_time=2030-01-16T00:00:00Z"];
  const problems: [string, string][] = [
    [end, "start_time"],
    [start, "end_time"],
    [`start_time=x&${end}`, "start_time"],
    [`start_time=0001-01-01T00:00:00Z&${end}`, "start_time"],
    [`start_time=2030-01-15T00:00:01Z&${end}`, "start_time"],
    [`start_time=2030-01-15T00:00:00.5Z&${end}`, "start_time"],
    [`start_time=2030-02-30T25:00:00Z&${end}`, "start_time"],
    [`start_time=2030-01-17T00:00:00Z&end_time=2030-01-18T00:00:00Z`, "start_time"],
    [`${start}&end_time=2030-01-16T11:00:00Z`, "end_time"],
    [`${start}&end_time=2030-01-17T00:00:00Z`, "end_time"],
    [`${start}&end_time=2030-01-16T09:30:00Z`, "end_time"],
    [`${start}&end_time=2030-01-15T09:00:00Z`, "end_time"],
    [`${start}&end_time=2030-01-15T00:00:00Z`, "end_time"],
    [`${start}&end_time=2030-01-14T00:00:00Z`, "end_time"],
    [`${start}&end_time=2030-01-16T00:00:00%2B01:00`, "end_time"],
    [`${start}&${end}&template_ids=x`, "template_ids"],
    [`${start}&${end}&colour=red`, "colour"],
  ];
  const invalidRequests = REPORTS.flatMap((path) => problems.map(([query, field]) => ({ path, query, field })));
  await Promise.all(
    invalidRequests.map(async ({ path, query, field }) => {
      const failure = await catchApiError(admin.get(toReportUrl(path, query)));
      const fields = failure?.body.validations?.map(({ field }) => field);
      expect([path, query, failure?.status, fields]).toEqual([path, query, 400, [field]]);
    }),
  );
  const validQueries = [
    `${start}&${end}`,
    `${start}&end_time=2030-01-16T10:00:00Z`,
    "start_time=2030-01-15T00:00:00%2B05:30&end_time=2030-01-16T15:00:00%2B05:30",
    // Some browsers do not escape the plus.
    "start_time=2030-01-15T00:00:00+05:45&end_time=2030-01-16T00:00:00+05:45",
    `${start}&${end}&template_ids=`,
  ];
  for (const path of REPORTS) {
    for (const query of validQueries) {
      const url = toReportUrl(path, query);
      expect([url, await awaitStatus(admin.get(url))]).toEqual([url, 200]);
    }
  }
});
/** Adds an interval to the query of the only report that accepts one. */
const toReportUrl = (path: string, query: string): string =>
  `${path}?${path === TEMPLATES ? "interval=day&" : ""}${query}`;

testInProcess(
  "[IN-8] the last week must have at least six days unless it ends today; includes intervals without use",
  async () => {
    await using world = await openInsights();
    const { admin } = world;
    const getReport = (from: string, to: string, interval: string) =>
      admin.get<Templates>(`${TEMPLATES}?start_time=${from}T00:00:00Z&end_time=${to}Z&interval=${interval}`);
    // Today so far, including the current hour.
    for (const [from, interval] of [
      ["2030-01-16", "day"],
      ["2030-01-16", "week"],
      ["2030-01-14", "week"],
      ["2030-01-09", "week"],
    ] as const) {
      for (const to of ["2030-01-16T10:00:00", "2030-01-16T09:00:00"]) {
        const { interval_reports = [] } = await getReport(from, to, interval);
        const last = interval_reports.at(-1);
        expect([interval_reports[0]?.start_time, last?.end_time]).toEqual([`${from}T00:00:00.000Z`, `${to}.000Z`]);
        expect(interval_reports.length).toBe(from === "2030-01-09" ? 2 : 1);
      }
    }
    expect(await awaitStatus(getReport("2030-01-05", "2030-01-15T00:00:00", "week"))).toBe(400);
    expect(await awaitStatus(getReport("2030-01-05", "2030-01-15T00:00:00", "month"))).toBe(400);
    const weeks = await getReport("2030-01-03", "2030-01-16T10:00:00", "week");
    expect(
      weeks.interval_reports?.map(({ start_time, end_time, interval }) => [start_time, end_time, interval]),
    ).toEqual([
      ["2030-01-03T00:00:00.000Z", "2030-01-10T00:00:00.000Z", "week"],
      ["2030-01-10T00:00:00.000Z", "2030-01-16T10:00:00.000Z", "week"],
    ]);
    const days = await getReport("2030-01-13", "2030-01-16T10:00:00", "day");
    expect(days.interval_reports?.map(({ active_users }) => active_users)).toEqual([0, 0, 0, 0]);
    expect(days.report?.apps_usage.map(({ slug, seconds, times_used }) => [slug, seconds, times_used])).toEqual(
      ["vscode", "jetbrains", "reconnecting-pty", "ssh", "sftp"].map((slug) => [slug, 0, 0]),
    );
  },
);

testInProcess(
  "[IN-12] rejects missing required parameters; upstream clients get the upstream defaults and sections",
  async () => {
    await using world = await openInsights();
    const { server, admin } = world;
    const url = (path: string): URL => new URL(path, server.url);
    const fetchAsUpstream = async (path: string) => {
      const response = await fetch(url(path), { headers: { "Coder-Session-Token": admin.token ?? "" } });
      return { status: response.status, body: (await response.json()) as Templates & { tz_hour_offset?: number } };
    };
    for (const [path, field] of [
      ["/api/v2/insights/daus", "tz_offset"],
      [`${TEMPLATES}?${RANGE}`, "interval"],
    ] as const) {
      const failure = await catchApiError(admin.get(path));
      expect([failure?.status, failure?.body.validations?.[0]?.field]).toEqual([400, field]);
    }
    expect((await fetchAsUpstream("/api/v2/insights/daus")).body.tz_hour_offset).toBe(0);
    expect((await fetchAsUpstream(`${TEMPLATES}?${RANGE}`)).body.interval_reports).toEqual([]);
    const reportOnly = await fetchAsUpstream(`${TEMPLATES}?${RANGE}&sections=report`);
    expect([reportOnly.status, Object.keys(reportOnly.body)]).toEqual([200, ["report"]]);
    expect(await awaitStatus(admin.get(`${TEMPLATES}?${RANGE}&interval=day&sections=all`))).toBe(400);
  },
);

testInProcess("[IN-8] a day with a clock change is longer or shorter", async () => {
  await using world = await openInsights();
  const getReport = (from: string, to: string, path = TEMPLATES) =>
    world.admin.get<Templates>(
      `${path}?start_time=${encodeURIComponent(from)}&end_time=${encodeURIComponent(to)}&interval=day`,
    );
  const listHours = ({ interval_reports = [] }: Templates) =>
    interval_reports.map(({ start_time, end_time }) => (Date.parse(end_time) - Date.parse(start_time)) / 3_600_000);
  // Central Europe changes back on 28 October 2029, New York forward on 11 March, Kathmandu never.
  expect(listHours(await getReport("2029-10-27T00:00:00+02:00", "2029-10-30T00:00:00+01:00"))).toEqual([24, 25, 24]);
  expect(listHours(await getReport("2029-03-10T00:00:00-05:00", "2029-03-13T00:00:00-04:00"))).toEqual([24, 23, 24]);
  for (const path of ["builds", "chats"]) {
    const { report } = (await getReport(
      "2029-10-27T00:00:00+02:00",
      "2029-10-30T00:00:00+01:00",
      `/api/v2/insights/${path}`,
    )) as unknown as { report: { intervals: { start_time: string; end_time: string }[] } };
    expect(listHours({ interval_reports: report.intervals } as Templates)).toEqual([24, 25, 24]);
  }
  for (const [from, to] of [
    ["2029-10-27T00:00:00+05:45", "2029-10-30T00:00:00+01:00"],
    ["2029-06-27T00:00:00+02:00", "2029-06-30T00:00:00+01:00"],
  ] as const)
    expect(await awaitStatus(getReport(from, to))).toBe(400);
});

testInProcess("[IN-7] counts daily users of 60 days and today at any offset, also per template", async () => {
  await using world = await openInsights();
  const { server, admin, clock, store, seeded } = world;
  const { usage } = getContext(server);
  const { workspace_id, agent_id } = seeded;
  const visitor = await seedUser(server);
  // 18:40 UTC of the day before: after midnight in India, not in Berlin.
  clock.leap(-15 * 3_600_000 + 10 * 60_000);
  usage.note({ workspace_id, agent_id, app: "ssh" });
  await usage.flush();
  clock.leap(15 * 3_600_000 - 10 * 60_000);
  usage.note({ workspace_id, agent_id, user_id: visitor.user_id });
  const templates = await store.scan(listTemplates());
  const usedTemplate = templates.find(({ template }) => template.organization_id === seeded.organization_id)?.template
    .id;
  const { template_id: unusedTemplate } = await seedTemplate(server);
  const getLastAmounts = async (path: string, offset: string) => {
    type DailyUsers = { entries: { amount: number; date: string }[]; tz_hour_offset: number };
    const { entries, tz_hour_offset } = await admin.get<DailyUsers>(`${path}?tz_offset=${offset}`);
    expect([entries.length, entries[0]?.date, entries[60]?.date]).toEqual([61, "2029-11-17", "2030-01-16"]);
    expect(tz_hour_offset).toBe(Number(offset));
    return entries.slice(-2).map(({ amount }) => amount);
  };
  for (const path of ["/api/v2/insights/daus", `/api/v2/templates/${usedTemplate}/daus`]) {
    expect([path, await getLastAmounts(path, "0")]).toEqual([path, [1, 1]]);
    expect([path, await getLastAmounts(path, "1")]).toEqual([path, [1, 1]]);
    expect([path, await getLastAmounts(path, "6")]).toEqual([path, [0, 2]]);
    expect([path, await getLastAmounts(path, "-3")]).toEqual([path, [1, 1]]);
  }
  expect(await getLastAmounts(`/api/v2/templates/${unusedTemplate}/daus`, "0")).toEqual([0, 0]);
  for (const offset of ["5.5", "15", "-13", "x", "1.0", "", "1e1", "+5", "%2B5", "%205", "--5", "5%20"]) {
    expect([offset, await awaitStatus(admin.get(`/api/v2/insights/daus?tz_offset=${offset}`))]).toEqual([offset, 400]);
  }
});

testInProcess("[IN-9] returns 403 to users without a role for the report", async () => {
  await using world = await openInsights();
  const { server, admin, store, seeded } = world;
  const { organization_id } = seeded;
  const templates = await store.scan(listTemplates());
  const ownTemplate = templates.find(({ template }) => template.organization_id === organization_id)?.template.id;
  const { template_id: foreignTemplate } = await seedTemplate(server);
  const fetchStatuses = async (roles: string[], organizationRoles: string[] = []) => {
    const { token, user_id } = await seedUser(server, { roles, organization_id });
    if (organizationRoles.length > 0)
      await admin.put(`/api/v2/organizations/${organization_id}/members/${user_id}/roles`, {
        roles: organizationRoles,
      });
    const client = admin.withToken(token);
    const getReportStatuses = async (ids: string): Promise<string> => {
      const statuses = await Promise.all(
        REPORTS.map((path) =>
          awaitStatus(
            client.get(`${path}?${path === TEMPLATES ? "interval=day&" : ""}${RANGE}${ids && `&template_ids=${ids}`}`),
          ),
        ),
      );
      return [...new Set(statuses)].join(" ");
    };
    return [
      await getReportStatuses(""),
      await getReportStatuses(`${ownTemplate}`),
      await getReportStatuses(`${ownTemplate},${foreignTemplate}`),
      await getReportStatuses(uuid()),
      await awaitStatus(client.get("/api/v2/insights/daus?tz_offset=0")),
      await awaitStatus(client.get("/api/v2/insights/user-status-counts")),
    ];
  };
  expect(await fetchStatuses([])).toEqual(["403", "403", "403", "403", 403, 403]);
  expect(await fetchStatuses(["auditor"])).toEqual(["200", "200", "200", "404", 200, 200]);
  expect(await fetchStatuses(["template-admin"])).toEqual(["200", "200", "200", "404", 403, 200]);
  expect(await fetchStatuses(["user-admin"])).toEqual(["403", "403", "403", "403", 403, 200]);
  expect(await fetchStatuses([], ["organization-admin"])).toEqual(["403", "200", "403", "403", 403, 403]);
  expect(await fetchStatuses(["owner"])).toEqual(["200", "200", "200", "404", 200, 200]);
});

const WITH_SIZE: Manifest = {
  provisioner: "echo",
  parameters: [
    {
      name: "size",
      display_name: "Size",
      default: "small",
      mutable: true,
      options: [
        { name: "Small", value: "small" },
        { name: "Big", value: "big" },
      ],
    },
  ],
  resources: [{ name: "main" }],
};

testInProcess("[IN-10] counts parameter values of the newest build of each workspace in the range", async () => {
  await using world = await openInsights(START - 2 * DAY);
  const { server, clock } = world;
  let { admin } = world;
  const firstTemplate = await seedTemplate(server, WITH_SIZE);
  const secondTemplate = await seedTemplate(server, WITH_SIZE);
  const withSize = (value: string) => ({ rich_parameter_values: [{ name: "size", value }] });
  const first = await createWorkspace(admin, firstTemplate.template_id, "first", withSize("small"));
  await createWorkspace(admin, firstTemplate.template_id, "second", withSize("small"));
  await createWorkspace(admin, secondTemplate.template_id, "third", withSize("big"));
  await awaitBuild(admin, first.id);
  clock.leap(DAY - 60_000);
  await admin.post(`/api/v2/workspaces/${first.id}/builds`, { transition: "start", ...withSize("big") });
  clock.leap(DAY + 60_000);
  admin = await admin.signIn(ADMIN.email, ADMIN.password);
  const getParameters = async (from: string, to: string, filter = "") =>
    (
      await admin.get<Templates>(
        `${TEMPLATES}?interval=day&start_time=${from}T00:00:00Z&end_time=${to}T00:00:00Z${filter}`,
      )
    ).report?.parameters_usage as { name: string; template_ids: string[]; values: object[]; options: unknown[] }[];
  const [size, ...others] = await getParameters("2030-01-14", "2030-01-16");
  expect(others).toEqual([]);
  expect(size).toMatchObject({ name: "size", display_name: "Size", description: "", type: "string" });
  expect(size?.options).toEqual([
    { name: "Small", value: "small", description: "", icon: "" },
    { name: "Big", value: "big", description: "", icon: "" },
  ]);
  expect(size?.template_ids).toEqual([firstTemplate.template_id, secondTemplate.template_id].sort());
  expect(size?.values).toEqual([
    { count: 2, value: "big" },
    { count: 1, value: "small" },
  ]);
  expect((await getParameters("2030-01-14", "2030-01-15"))[0]?.values).toEqual([
    { count: 1, value: "big" },
    { count: 2, value: "small" },
  ]);
  expect((await getParameters("2030-01-15", "2030-01-16"))[0]?.values).toEqual([{ count: 1, value: "big" }]);
  expect(
    (await getParameters("2030-01-14", "2030-01-16", `&template_ids=${firstTemplate.template_id}`))[0]?.values,
  ).toEqual([
    { count: 1, value: "big" },
    { count: 1, value: "small" },
  ]);
});

test("[IN-10] shows only the URL of a repository, not the plan derived from it", async () => {
  const plan = JSON.stringify({ url: "https://git.example/app", container_env: { TOKEN: "private" } });
  const parameters = [{ name: "repository", form_type: "repository" }];
  const manifest = JSON.stringify({ provisioner: "echo", parameters, resources: [] });
  const read = async (sql: string): Promise<unknown[][]> =>
    sql.includes("workspace_build_parameters") ? [["t", "v", "repository", plan, 2]] : [[manifest, 0]];
  expect(await parametersUsage(read as never, { from: 0, to: 1 })).toMatchObject([
    { name: "repository", values: [{ count: 2, value: "https://git.example/app" }] },
  ]);
});

testInProcess("[IN-10] separates parameters with the same name but different meanings", async () => {
  await using world = await openWorld({ clock: new ManualClock(START) });
  const { server, admin } = world;
  const seedRegionTemplate = (description: string) =>
    seedTemplate(server, { ...WITH_SIZE, parameters: [{ name: "region", description, default: "eu" }] });
  const [machines, firstDatabase, secondDatabase] = [
    await seedRegionTemplate("Where the machine is"),
    await seedRegionTemplate("Of the database"),
    await seedRegionTemplate("Of the database"),
  ];
  const templates = [machines, firstDatabase, secondDatabase];
  for (const [i, { template_id }] of templates.entries()) await createWorkspace(admin, template_id, `w-${i}`);
  const { report } = await admin.get<Templates>(`${TEMPLATES}?${RANGE}&interval=day`);
  const parameters = report?.parameters_usage as { description: string; template_ids: string[]; values: object[] }[];
  expect(parameters.map(({ description, template_ids, values }) => [description, template_ids, values])).toEqual([
    ["Of the database", [firstDatabase.template_id, secondDatabase.template_id].sort(), [{ count: 2, value: "eu" }]],
    ["Where the machine is", [machines.template_id], [{ count: 1, value: "eu" }]],
  ]);
});

testInProcess("[IN-11] counts statuses at every midnight of a zone and at the next full hour", async () => {
  // Friday noon in Berlin; clocks go forward there on Sunday, 31 March.
  const clock = new ManualClock(Date.UTC(2030, 2, 29, 11, 0));
  await using world = await openWorld({ clock });
  const { server } = world;
  let { admin } = world;
  // A session lasts a day.
  const signInAgain = async (): Promise<void> => {
    admin = await admin.signIn(ADMIN.email, ADMIN.password);
  };
  type StatusCounts = { status_counts: Record<string, { count: number; date: string }[]> };
  const getLastCounts = async (query: string, points: number) => {
    const { status_counts } = await admin.get<StatusCounts>(`/api/v2/insights/user-status-counts${query}`);
    expect(Object.keys(status_counts).sort()).toEqual(["active", "dormant", "suspended"]);
    expect(Object.values(status_counts).map(({ length }) => length)).toEqual([62, 62, 62]);
    const dates = status_counts.active?.slice(-points).map(({ date }) => date.slice(5, 16));
    const counts = ["active", "dormant", "suspended"].map((status) =>
      (status_counts[status] ?? [])
        .slice(-points)
        .map(({ count }) => count)
        .join(" "),
    );
    return [dates, ...counts];
  };
  const suspendedUser = await seedUser(server);
  const deletedUser = await seedUser(server);
  const { id } = await admin.post<{ id: string }>("/api/v2/users", {
    email: "d@example.com",
    username: "dora",
    password: "a-long-Enough-secret",
  });
  clock.leap(DAY);
  await signInAgain();
  await admin.put(`/api/v2/users/${suspendedUser.user_id}/status/suspend`);
  clock.leap(DAY);
  await signInAgain();
  await admin.delete(`/api/v2/users/${deletedUser.user_id}`);
  await admin.put(`/api/v2/users/${suspendedUser.user_id}/status/activate`);
  clock.leap(DAY);
  await signInAgain();
  await admin.withToken(undefined).signIn("d@example.com", "a-long-Enough-secret");
  expect(id).not.toBe("");
  const berlin = ["03-28T23:00", "03-29T23:00", "03-30T23:00", "03-31T22:00", "04-01T12:00"];
  expect(await getLastCounts("?timezone=Europe/Berlin", 5)).toEqual([berlin, "0 3 2 2 3", "0 1 1 1 0", "0 0 1 0 0"]);
  const fixed = ["03-28T23:00", "03-29T23:00", "03-30T23:00", "03-31T23:00", "04-01T12:00"];
  expect(await getLastCounts("?tz_offset=1", 5)).toEqual([fixed, "0 3 2 2 3", "0 1 1 1 0", "0 0 1 0 0"]);
  expect(await getLastCounts("", 2)).toEqual([["04-01T00:00", "04-01T12:00"], "2 3", "1 0", "0 0"]);
  expect(await getLastCounts("?tz_offset=-3", 2)).toEqual([["04-01T03:00", "04-01T12:00"], "2 3", "1 0", "0 0"]);
  for (const invalid of [
    "?timezone=Mars/Base",
    "?timezone=%2B02:00",
    "?timezone=UTC&tz_offset=1",
    "?tz_offset=x",
    "?tz_offset=5.5",
    "?tz_offset=1e1",
    "?zone=UTC",
  ]) {
    expect([invalid, await awaitStatus(admin.get<unknown>(`/api/v2/insights/user-status-counts${invalid}`))]).toEqual([
      invalid,
      400,
    ]);
  }
});
