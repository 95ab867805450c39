// Rejected requests for a new workspace (facts/platform 3.2), and the responses for both kinds of callers.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError, type Client } from "#src/client.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { importVersion, makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

test("[WK-19] an invalid request for a workspace is rejected with a status and the invalid fields, and creates nothing", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const parameters = [{ name: "size" }, { name: "kind", default: "a" }];
  const { template_id, version_id } = await seedTemplate(server, { ...ECHO, parameters });
  const deprecated = await seedTemplate(server, ECHO, { deprecation_message: "use the other" });
  const size = [{ name: "size", value: "1" }];
  const validWorkspace = { name: "ok", template_id, rich_parameter_values: size };
  const cases: [string, object, number, string[]][] = [
    ["no template", { ...validWorkspace, template_id: undefined }, 400, ["template_id", "template_version_id"]],
    [
      "two templates",
      { ...validWorkspace, template_version_id: version_id },
      400,
      ["template_id", "template_version_id"],
    ],
    ["unknown template", { ...validWorkspace, template_id: uuid() }, 400, ["template_id"]],
    [
      "unknown version",
      { ...validWorkspace, template_id: undefined, template_version_id: uuid() },
      400,
      ["template_version_id"],
    ],
    ["deprecated", { name: "ok", template_id: deprecated.template_id }, 400, []],
    ["long name", { ...validWorkspace, name: "x".repeat(33) }, 400, ["name"]],
    ["odd name", { ...validWorkspace, name: "a--b" }, 400, ["name"]],
    ["reserved name", { ...validWorkspace, name: "New" }, 400, ["name"]],
    ["missing name", { ...validWorkspace, name: undefined }, 400, ["name"]],
    ["short ttl", { ...validWorkspace, ttl_ms: 1 }, 400, ["ttl_ms"]],
    ["long ttl", { ...validWorkspace, ttl_ms: 31 * 86_400_000 }, 400, ["ttl_ms"]],
    ["shortcut schedule", { ...validWorkspace, autostart_schedule: "@daily" }, 400, ["schedule"]],
    ["schedule with a month", { ...validWorkspace, autostart_schedule: "0 9 1 * 1" }, 400, ["schedule"]],
    ["unknown zone", { ...validWorkspace, autostart_schedule: "CRON_TZ=Mars/North 0 9 * * 1" }, 400, ["schedule"]],
    ["updates", { ...validWorkspace, automatic_updates: "weekly" }, 400, ["automatic_updates"]],
    ["missing value", { ...validWorkspace, rich_parameter_values: [] }, 400, ["size"]],
    ["unknown value", { ...validWorkspace, rich_parameter_values: [...size, { name: "no", value: "" }] }, 400, ["no"]],
    ["unknown preset", { ...validWorkspace, template_version_preset_id: uuid() }, 400, ["template_version_preset_id"]],
  ];
  for (const [name, body, status, fields] of cases) {
    const error = await admin.post<unknown>("/api/v2/users/me/workspaces", body).catch((error: ApiError) => error);
    if (!(error instanceof ApiError)) throw new Error(`${name} was not rejected`);
    const invalidFields = error.body.validations?.map(({ field }) => field) ?? [];
    expect([name, error.status, invalidFields]).toEqual([name, status, fields]);
  }
  expect(await admin.get<object>("/api/v2/workspaces")).toEqual({ workspaces: [], count: 0 });
});

test("[WK-20] clients of Slipway get 200 and {uuid, valid}; genuine clients get 201 and null", async () => {
  await using world = await openWorld();
  const { template_id, organization_id } = await seedTemplate(world.server);
  const path = `/api/v2/organizations/${organization_id}/members/me/workspaces`;
  const response = await world.admin.fetch("POST", path, { name: "one", template_id, ttl_ms: 90_500 });
  expect(response.status).toBe(200);
  const created = (await response.json()) as Workspace;
  expect(created.task_id).toEqual({ uuid: "00000000-0000-0000-0000-000000000000", valid: false });
  expect(created.ttl_ms).toBe(60_000);
  const genuineResponse = await fetch(new URL(path, world.server.url), {
    method: "POST",
    headers: { "Coder-Session-Token": world.admin.token ?? "", "content-type": "application/json" },
    body: JSON.stringify({ name: "two", template_id }),
  });
  expect(genuineResponse.status).toBe(201);
  expect(((await genuineResponse.json()) as Workspace).task_id).toBeNull();
  await awaitBuild(world.admin, created.id);
});

testInProcess(
  "[WK-12] [WK-13] a cached response is rebuilt when anything it shows changes, and only callers with access get it",
  async () => {
    await using world = await openWorld();
    const { template_id, organization_id } = await seedTemplate(world.server);
    const { id } = await createWorkspace(world.admin, template_id);
    const running = await awaitBuild(world.admin, id);
    const read = () => world.admin.get<Workspace>(`/api/v2/workspaces/${id}`);
    expect(await read()).toEqual(running);
    const { context } = world.server;
    if (!context) throw new Error("this test needs a server in its own process");
    const changeAndRead = async (sql: string): Promise<Workspace> => {
      await context.store.commit([{ sql, rows: [[]] }]);
      return read();
    };
    expect(
      (await changeAndRead("update agents set lifecycle_state = 'ready'")).latest_build.resources[0]?.agents[0],
    ).toMatchObject({ lifecycle_state: "ready" });
    expect(
      (await changeAndRead("update agents set logs_length = 7")).latest_build.resources[0]?.agents[0]?.logs_length,
    ).toBe(7);
    expect(
      (await changeAndRead("update users set username = 'root', updated_at = updated_at + 1 where username = 'admin'"))
        .owner_name,
    ).toBe("root");
    expect((await changeAndRead("update workspaces set favorite = 1")).favorite).toBe(true);
    const outsider = await seedUser(world.server, { organization_id });
    const response = await world.admin.withToken(outsider.token).fetch("GET", `/api/v2/workspaces/${id}`);
    expect(response.status).toBe(404);
    const templateAdmin = await seedUser(world.server, { roles: ["template-admin"] });
    const shownToAdmin = await world.admin.withToken(templateAdmin.token).get<Workspace>(`/api/v2/workspaces/${id}`);
    expect(shownToAdmin.favorite).toBe(false);
  },
);

test("[TP-38] a template that repeats a long value too often fails the start with an explanation; the workspace can be deleted", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, {
    ...ECHO,
    parameters: [{ name: "long" }],
    resources: [{ name: "one", metadata: [{ key: "k", value: "{{ parameters.long }}".repeat(100) }] }],
  });
  const values = { rich_parameter_values: [{ name: "long", value: "x".repeat(6000) }] };
  const { id } = await createWorkspace(world.admin, template_id, "long", values);
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.job).toMatchObject({
    status: "failed",
    error: expect.stringContaining("inserts values of more than 524288 characters"),
  });
  await createBuild(world.admin, id, "delete");
  expect((await awaitBuild(world.admin, id)).latest_build.status).toBe("deleted");
});

test("[WK-19] if a template requires its active version, only its administrators can use another one", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { id, organization_id, active_version_id: oldVersion } = await makeTemplate(admin, JSON.stringify(ECHO));
  const newVersion = await importVersion(admin, JSON.stringify(ECHO), { template_id: id });
  await admin.patch(`/api/v2/templates/${id}/versions`, { id: newVersion.id });
  await admin.patch(`/api/v2/templates/${id}`, { require_active_version: true });
  const member = admin.withToken((await seedUser(world.server, { organization_id })).token);
  const createWith = (client: Client, version: string, name: string) =>
    awaitStatus(client.post("/api/v2/users/me/workspaces", { name, template_version_id: version }));
  expect(await createWith(member, oldVersion, "v1")).toBe(403);
  expect(await createWith(member, newVersion.id, "v2")).toBe(200);
  expect(await createWith(admin, oldVersion, "v1")).toBe(200);
});
