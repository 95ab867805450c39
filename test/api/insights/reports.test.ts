// The reports from a caller's view: what may be requested, by whom, and days, parameters and statuses.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import { parametersUsage } from "#db/reports/usage/parameters.ts";
import { listTemplates } from "#db/templates/templates.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import { testInside } from "#test/support/inside.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";
import { awaitStatus, catchApiError, openInsights, RANGE, START, type Templates } from "./world.ts";

const DAY = 86_400_000;
const TEMPLATES = "/api/v2/insights/templates";
const REPORTS = [TEMPLATES, "/api/v2/insights/user-activity", "/api/v2/insights/user-latency"];

testInside("[IN-8] a range that is not whole days is refused, and the parameter is named", async () => {
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
  const refused = REPORTS.flatMap((path) => problems.map(([query, field]) => ({ path, query, field })));
  await Promise.all(
    refused.map(async ({ path, query, field }) => {
      const failure = await catchApiError(
        admin.get(`${path}?interval=day&${query}`.replace(invalidInterval(path), "")),
      );
      const named = failure?.body.validations?.map((one) => one.field);
      expect([path, query, failure?.status, named]).toEqual([path, query, 400, [field]]);
    }),
  );
  const good = [
    `${start}&${end}`,
    `${start}&end_time=2030-01-16T10:00:00Z`,
    "start_time=2030-01-15T00:00:00%2B05:30&end_time=2030-01-16T15:00:00%2B05:30",
    // As sent by a browser that does not escape the plus.
    "start_time=2030-01-15T00:00:00+05:45&end_time=2030-01-16T00:00:00+05:45",
    `${start}&${end}&template_ids=`,
  ];
  for (const path of REPORTS) {
    for (const query of good) {
      const url = `${path}?interval=day&${query}`.replace(invalidInterval(path), "");
      expect([url, await awaitStatus(admin.get(url))]).toEqual([url, 200]);
    }
  }
});
/** The interval belongs to one of the three. */
const invalidInterval = (path: string): string => (path === TEMPLATES ? "\u0000" : "interval=day&");

testInside(
  "[IN-8] weeks need a last part of six days, unless they end today; intervals without use are included",
  async () => {
    await using world = await openInsights();
    const { admin } = world;
    const ask = (from: string, to: string, interval: string) =>
      admin.get<Templates>(`${TEMPLATES}?start_time=${from}T00:00:00Z&end_time=${to}Z&interval=${interval}`);
    // Today so far, including the current hour.
    for (const [from, interval] of [
      ["2030-01-16", "day"],
      ["2030-01-16", "week"],
      ["2030-01-14", "week"],
      ["2030-01-09", "week"],
    ] as const) {
      for (const to of ["2030-01-16T10:00:00", "2030-01-16T09:00:00"]) {
        const { interval_reports = [] } = await ask(from, to, interval);
        const last = interval_reports.at(-1);
        expect([interval_reports[0]?.start_time, last?.end_time]).toEqual([`${from}T00:00:00.000Z`, `${to}.000Z`]);
        expect(interval_reports.length).toBe(from === "2030-01-09" ? 2 : 1);
      }
    }
    expect(await awaitStatus(ask("2030-01-05", "2030-01-15T00:00:00", "week"))).toBe(400);
    expect(await awaitStatus(ask("2030-01-05", "2030-01-15T00:00:00", "month"))).toBe(400);
    const weeks = await ask("2030-01-03", "2030-01-16T10:00:00", "week");
    expect(
      weeks.interval_reports?.map(({ start_time, end_time, interval }) => [start_time, end_time, interval]),
    ).toEqual([
      ["2030-01-03T00:00:00.000Z", "2030-01-10T00:00:00.000Z", "week"],
      ["2030-01-10T00:00:00.000Z", "2030-01-16T10:00:00.000Z", "week"],
    ]);
    const days = await ask("2030-01-13", "2030-01-16T10:00:00", "day");
    expect(days.interval_reports?.map(({ active_users }) => active_users)).toEqual([0, 0, 0, 0]);
    expect(days.report?.apps_usage.map(({ slug, seconds, times_used }) => [slug, seconds, times_used])).toEqual(
      ["vscode", "jetbrains", "reconnecting-pty", "ssh", "sftp"].map((slug) => [slug, 0, 0]),
    );
  },
);

testInside(
  "[IN-12] missing required parameters are refused; upstream clients get the upstream defaults and sections",
  async () => {
    await using world = await openInsights();
    const { server, admin } = world;
    const url = (path: string): URL => new URL(path, server.url);
    const upstream = async (path: string) => {
      const answer = await fetch(url(path), { headers: { "Coder-Session-Token": admin.token ?? "" } });
      return { status: answer.status, body: (await answer.json()) as Templates & { tz_hour_offset?: number } };
    };
    for (const [path, field] of [
      ["/api/v2/insights/daus", "tz_offset"],
      [`${TEMPLATES}?${RANGE}`, "interval"],
    ] as const) {
      const failure = await catchApiError(admin.get(path));
      expect([failure?.status, failure?.body.validations?.[0]?.field]).toEqual([400, field]);
    }
    expect((await upstream("/api/v2/insights/daus")).body.tz_hour_offset).toBe(0);
    expect((await upstream(`${TEMPLATES}?${RANGE}`)).body.interval_reports).toEqual([]);
    const part = await upstream(`${TEMPLATES}?${RANGE}&sections=report`);
    expect([part.status, Object.keys(part.body)]).toEqual([200, ["report"]]);
    expect(await awaitStatus(admin.get(`${TEMPLATES}?${RANGE}&interval=day&sections=all`))).toBe(400);
  },
);

testInside("[IN-8] a range may include a clock change: that day is longer or shorter", async () => {
  await using world = await openInsights();
  const ask = (from: string, to: string, path = TEMPLATES) =>
    world.admin.get<Templates>(
      `${path}?start_time=${encodeURIComponent(from)}&end_time=${encodeURIComponent(to)}&interval=day`,
    );
  const hours = ({ interval_reports = [] }: Templates) =>
    interval_reports.map(({ start_time, end_time }) => (Date.parse(end_time) - Date.parse(start_time)) / 3_600_000);
  // Central Europe changes back on 28 October 2029, New York forward on 11 March, Kathmandu never.
  expect(hours(await ask("2029-10-27T00:00:00+02:00", "2029-10-30T00:00:00+01:00"))).toEqual([24, 25, 24]);
  expect(hours(await ask("2029-03-10T00:00:00-05:00", "2029-03-13T00:00:00-04:00"))).toEqual([24, 23, 24]);
  for (const path of ["builds", "chats"]) {
    const { report } = (await ask(
      "2029-10-27T00:00:00+02:00",
      "2029-10-30T00:00:00+01:00",
      `/api/v2/insights/${path}`,
    )) as unknown as { report: { intervals: { start_time: string; end_time: string }[] } };
    expect(hours({ interval_reports: report.intervals } as Templates)).toEqual([24, 25, 24]);
  }
  for (const [from, to] of [
    ["2029-10-27T00:00:00+05:45", "2029-10-30T00:00:00+01:00"],
    ["2029-06-27T00:00:00+02:00", "2029-06-30T00:00:00+01:00"],
  ] as const)
    expect(await awaitStatus(ask(from, to))).toBe(400);
});

testInside("[IN-7] sixty days and today, at any offset; a template's own counts only its users", async () => {
  await using world = await openInsights();
  const { server, admin, clock, store, seeded } = world;
  const { usage } = getContext(server);
  const { workspace_id, agent_id } = seeded;
  const guest = await seedUser(server);
  // 18:40 UTC of the day before: after midnight in India, not in Berlin.
  clock.leap(-15 * 3_600_000 + 10 * 60_000);
  usage.note({ workspace_id, agent_id, app: "ssh" });
  await usage.flush();
  clock.leap(15 * 3_600_000 - 10 * 60_000);
  usage.note({ workspace_id, agent_id, user_id: guest.user_id });
  const templates = await store.scan(listTemplates());
  const used = templates.find(({ template }) => template.organization_id === seeded.organization_id)?.template.id;
  const { template_id: other } = await seedTemplate(server);
  const read = async (path: string, offset: string) => {
    type DailyUsers = { entries: { amount: number; date: string }[]; tz_hour_offset: number };
    const { entries, tz_hour_offset } = await admin.get<DailyUsers>(`${path}?tz_offset=${offset}`);
    expect([entries.length, entries[0]?.date, entries[60]?.date]).toEqual([61, "2029-11-17", "2030-01-16"]);
    expect(tz_hour_offset).toBe(Number(offset));
    return entries.slice(-2).map(({ amount }) => amount);
  };
  for (const path of ["/api/v2/insights/daus", `/api/v2/templates/${used}/daus`]) {
    expect([path, await read(path, "0")]).toEqual([path, [1, 1]]);
    expect([path, await read(path, "1")]).toEqual([path, [1, 1]]);
    expect([path, await read(path, "6")]).toEqual([path, [0, 2]]);
    expect([path, await read(path, "-3")]).toEqual([path, [1, 1]]);
  }
  expect(await read(`/api/v2/templates/${other}/daus`, "0")).toEqual([0, 0]);
  for (const offset of ["5.5", "15", "-13", "x", "1.0", "", "1e1", "+5", "%2B5", "%205", "--5", "5%20"]) {
    expect([offset, await awaitStatus(admin.get(`/api/v2/insights/daus?tz_offset=${offset}`))]).toEqual([offset, 400]);
  }
});

testInside("[IN-9] each report is limited to its roles, and all other users get 403", async () => {
  await using world = await openInsights();
  const { server, admin, store, seeded } = world;
  const { organization_id } = seeded;
  const templates = await store.scan(listTemplates());
  const own = templates.find(({ template }) => template.organization_id === organization_id)?.template.id;
  const { template_id: foreign } = await seedTemplate(server);
  const fetchStatuses = async (roles: string[], of: string[] = []) => {
    const { token, user_id } = await seedUser(server, { roles, organization_id });
    if (of.length > 0)
      await admin.put(`/api/v2/organizations/${organization_id}/members/${user_id}/roles`, { roles: of });
    const client = admin.withToken(token);
    const of3 = async (ids: string): Promise<string> => {
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
      await of3(""),
      await of3(`${own}`),
      await of3(`${own},${foreign}`),
      await of3(uuid()),
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

testInside("[IN-10] parameter values are those of the newest build of each workspace in the range", async () => {
  await using world = await openInsights(START - 2 * DAY);
  const { server, clock } = world;
  let { admin } = world;
  const one = await seedTemplate(server, WITH_SIZE);
  const two = await seedTemplate(server, WITH_SIZE);
  const values = (value: string) => ({ rich_parameter_values: [{ name: "size", value }] });
  const first = await createWorkspace(admin, one.template_id, "first", values("small"));
  await createWorkspace(admin, one.template_id, "second", values("small"));
  await createWorkspace(admin, two.template_id, "third", values("big"));
  for (const { id } of [first]) await awaitBuild(admin, id);
  clock.leap(DAY - 60_000);
  await admin.post(`/api/v2/workspaces/${first.id}/builds`, { transition: "start", ...values("big") });
  clock.leap(DAY + 60_000);
  admin = await admin.signIn(ADMIN.email, ADMIN.password);
  const read = async (from: string, to: string, more = "") =>
    (
      await admin.get<Templates>(
        `${TEMPLATES}?interval=day&start_time=${from}T00:00:00Z&end_time=${to}T00:00:00Z${more}`,
      )
    ).report?.parameters_usage as { name: string; template_ids: string[]; values: object[]; options: unknown[] }[];
  const [size, ...others] = await read("2030-01-14", "2030-01-16");
  expect(others).toEqual([]);
  expect(size).toMatchObject({ name: "size", display_name: "Size", description: "", type: "string" });
  expect(size?.options).toEqual([
    { name: "Small", value: "small", description: "", icon: "" },
    { name: "Big", value: "big", description: "", icon: "" },
  ]);
  expect(size?.template_ids).toEqual([one.template_id, two.template_id].sort());
  expect(size?.values).toEqual([
    { count: 2, value: "big" },
    { count: 1, value: "small" },
  ]);
  expect((await read("2030-01-14", "2030-01-15"))[0]?.values).toEqual([
    { count: 1, value: "big" },
    { count: 2, value: "small" },
  ]);
  expect((await read("2030-01-15", "2030-01-16"))[0]?.values).toEqual([{ count: 1, value: "big" }]);
  expect((await read("2030-01-14", "2030-01-16", `&template_ids=${one.template_id}`))[0]?.values).toEqual([
    { count: 1, value: "big" },
    { count: 1, value: "small" },
  ]);
});

test("[IN-10] of a repository, the report shows the link, not the configuration that was read", async () => {
  const plan = JSON.stringify({ url: "https://git.example/app", container_env: { TOKEN: "private" } });
  const parameters = [{ name: "repository", form_type: "repository" }];
  const manifest = JSON.stringify({ provisioner: "echo", parameters, resources: [] });
  const read = async (sql: string): Promise<unknown[][]> =>
    sql.includes("workspace_build_parameters") ? [["t", "v", "repository", plan, 2]] : [[manifest, 0]];
  expect(await parametersUsage(read as never, { from: 0, to: 1 })).toMatchObject([
    { name: "repository", values: [{ count: 2, value: "https://git.example/app" }] },
  ]);
});

testInside("[IN-10] equally named parameters are kept apart if templates use them for something else", async () => {
  await using world = await openWorld({ clock: new ManualClock(START) });
  const { server, admin } = world;
  const region = (description: string) =>
    seedTemplate(server, { ...WITH_SIZE, parameters: [{ name: "region", description, default: "eu" }] });
  const [one, other, same] = [
    await region("Where the machine is"),
    await region("Of the database"),
    await region("Of the database"),
  ];
  for (const [i, { template_id }] of [one, other, same].entries()) await createWorkspace(admin, template_id, `w-${i}`);
  const { report } = await admin.get<Templates>(`${TEMPLATES}?${RANGE}&interval=day`);
  const shown = report?.parameters_usage as { description: string; template_ids: string[]; values: object[] }[];
  expect(shown.map(({ description, template_ids, values }) => [description, template_ids, values])).toEqual([
    ["Of the database", [other.template_id, same.template_id].sort(), [{ count: 2, value: "eu" }]],
    ["Where the machine is", [one.template_id], [{ count: 1, value: "eu" }]],
  ]);
});

testInside("[IN-11] statuses are counted at every midnight of a zone and at the next full hour", async () => {
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
  const last = async (query: string, points: number) => {
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
  const one = await seedUser(server);
  const two = await seedUser(server);
  const { id } = await admin.post<{ id: string }>("/api/v2/users", {
    email: "d@example.com",
    username: "dora",
    password: "a-long-Enough-secret",
  });
  clock.leap(DAY);
  await signInAgain();
  await admin.put(`/api/v2/users/${one.user_id}/status/suspend`);
  clock.leap(DAY);
  await signInAgain();
  await admin.delete(`/api/v2/users/${two.user_id}`);
  await admin.put(`/api/v2/users/${one.user_id}/status/activate`);
  clock.leap(DAY);
  await signInAgain();
  await admin.withToken(undefined).signIn("d@example.com", "a-long-Enough-secret");
  expect(id).not.toBe("");
  const berlin = ["03-28T23:00", "03-29T23:00", "03-30T23:00", "03-31T22:00", "04-01T12:00"];
  expect(await last("?timezone=Europe/Berlin", 5)).toEqual([berlin, "0 3 2 2 3", "0 1 1 1 0", "0 0 1 0 0"]);
  const fixed = ["03-28T23:00", "03-29T23:00", "03-30T23:00", "03-31T23:00", "04-01T12:00"];
  expect(await last("?tz_offset=1", 5)).toEqual([fixed, "0 3 2 2 3", "0 1 1 1 0", "0 0 1 0 0"]);
  expect(await last("", 2)).toEqual([["04-01T00:00", "04-01T12:00"], "2 3", "1 0", "0 0"]);
  expect(await last("?tz_offset=-3", 2)).toEqual([["04-01T03:00", "04-01T12:00"], "2 3", "1 0", "0 0"]);
  for (const wrong of [
    "?timezone=Mars/Base",
    "?timezone=%2B02:00",
    "?timezone=UTC&tz_offset=1",
    "?tz_offset=x",
    "?tz_offset=5.5",
    "?tz_offset=1e1",
    "?zone=UTC",
  ]) {
    expect([wrong, await awaitStatus(admin.get<unknown>(`/api/v2/insights/user-status-counts${wrong}`))]).toEqual([
      wrong,
      400,
    ]);
  }
});
