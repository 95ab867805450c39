// Builds by ID and number: their inputs, their resources, and who may access them.
import { expect, test } from "bun:test";
import { uuid } from "#base/ids.ts";
import type { Build, BuildTimings } from "#schema/workspaces/build.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Resource } from "#schema/workspaces/resource.ts";
import type { Client } from "#src/client.ts";
import { toPresetId } from "#src/provisioners/presets.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

test("[BD-1] omitted parameters keep their value, immutable ones cannot change, ephemeral ones are asked for again", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server, {
    ...ECHO,
    parameters: [
      { name: "size", default: "small", mutable: true },
      { name: "region", default: "eu" },
      { name: "reset", default: "false", mutable: true, ephemeral: true },
    ],
  });
  const values = [
    { name: "size", value: "big" },
    { name: "reset", value: "true" },
  ];
  const { id, latest_build } = await createWorkspace(admin, template_id, "dev", { rich_parameter_values: values });
  await awaitBuild(admin, id);
  const listParameters = (build: string) => admin.get<object[]>(`/api/v2/workspacebuilds/${build}/parameters`);
  expect(await listParameters(latest_build.id)).toEqual([
    { name: "region", value: "eu" },
    { name: "reset", value: "true" },
    { name: "size", value: "big" },
  ]);
  const moved = createBuild(admin, id, "start", { rich_parameter_values: [{ name: "region", value: "us" }] });
  expect(await awaitStatus(moved)).toBe(400);
  const secondStart = await createBuild(admin, id, "start");
  expect(await listParameters(secondStart.id)).toEqual([
    { name: "region", value: "eu" },
    { name: "reset", value: "false" },
    { name: "size", value: "big" },
  ]);
});

test("[BD-2] resources and timings of a build; sensitive metadata is blank; a preset fills its parameters in", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const metadata = [
    { key: "host", value: "h1" },
    { key: "password", value: "hunter2", sensitive: true },
  ];
  const { template_id, version_id } = await seedTemplate(world.server, {
    provisioner: "echo",
    parameters: [{ name: "size" }],
    presets: [{ name: "Large", parameters: { size: "xl" } }],
    resources: [
      { name: "disk", daily_cost: 2 },
      { name: "machine", daily_cost: 5, metadata, agents: [{ name: "dev", apps: [{ slug: "web", url: "http://x" }] }] },
    ],
  });
  const preset = toPresetId(version_id, "Large");
  const { id, latest_build } = await createWorkspace(admin, template_id, "dev", { template_version_preset_id: preset });
  const running = await awaitBuild(admin, id);
  expect(running.latest_build).toMatchObject({ daily_cost: 7, template_version_preset_id: preset });
  const resources = await admin.get<Resource[]>(`/api/v2/workspacebuilds/${latest_build.id}/resources`);
  expect(resources.map(({ name }) => name)).toEqual(["machine", "disk"]);
  expect(resources[0]?.metadata).toEqual([
    { key: "host", value: "h1", sensitive: false },
    { key: "password", value: "", sensitive: true },
  ]);
  expect(resources[0]?.agents[0]?.apps[0]).toMatchObject({ slug: "web", health: "disabled", sharing_level: "owner" });
  const timings = await admin.get<BuildTimings>(`/api/v2/workspaces/${id}/timings`);
  expect(timings).toEqual({ provisioner_timings: [], agent_script_timings: [], agent_connection_timings: [] });
});

test("[BD-3] a build is 404 if not visible, 403 if visible but forbidden, and 400 if the request is invalid", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(
    server,
    { ...ECHO, echo: { hang: true } },
    {
      allow_user_cancel_workspace_jobs: false,
    },
  );
  const owner = await seedUser(server, { organization_id });
  const mine = admin.withToken(owner.token);
  const { id, latest_build } = await createWorkspace(mine, template_id);
  const outsider = admin.withToken((await seedUser(server, { organization_id })).token);
  const build = `/api/v2/workspacebuilds/${latest_build.id}`;
  for (const path of [build, `${build}/logs`, `${build}/parameters`, `${build}/resources`, `${build}/timings`]) {
    expect([path, await awaitStatus(outsider.get(path))]).toEqual([path, 404]);
    expect([path, await awaitStatus(mine.get(path))]).toEqual([path, 200]);
  }
  expect(await awaitStatus(createBuild(outsider, id, "stop"))).toBe(404);
  expect(await awaitStatus(outsider.patch(`${build}/cancel`))).toBe(404);
  expect(await awaitStatus(mine.patch(`${build}/cancel`))).toBe(403);
  expect(await awaitStatus(mine.patch(`${build}/cancel?expect_status=soon`))).toBe(400);
  const asks: [Client, object, number][] = [
    [mine, { transition: "dance" }, 400],
    [mine, { transition: "stop", orphan: true }, 400],
    [mine, { transition: "delete", orphan: true }, 403],
    [mine, { transition: "start", log_level: "debug" }, 403],
    [mine, { transition: "start", dry_run: true }, 400],
    [mine, { transition: "start", template_version_id: uuid() }, 404],
    [mine, { transition: "start" }, 409],
  ];
  for (const [client, body, status] of asks) {
    expect([body, await awaitStatus(client.post<unknown>(`/api/v2/workspaces/${id}/builds`, body))]).toEqual([
      body,
      status,
    ]);
  }
  expect(await awaitStatus(admin.patch(`${build}/cancel`))).toBe(200);
  const other = await seedTemplate(server);
  const foreign = createBuild(admin, id, "start", { template_version_id: other.version_id });
  expect(await awaitStatus(foreign)).toBe(404);
});

test("[BD-4] an orphaning delete runs no provisioner and still ends the workspace", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const build = await createBuild(world.admin, id, "delete", { orphan: true });
  using follower = await world.admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow=true`);
  expect((await follower.closed).code).toBe(1000);
  const done = await world.admin.get<Build>(`/api/v2/workspacebuilds/${build.id}`);
  expect(done.status).toBe("deleted");
});

test("[BD-7] the log as events: lines after the cursor, then each new line, and an end when the job has ended", async () => {
  await using world = await openWorld();
  const echo = { logs: ["one", "two", "three"], hang: true };
  const { template_id } = await seedTemplate(world.server, Object.assign({ echo }, ECHO));
  const { id, latest_build } = await createWorkspace(world.admin, template_id);
  const build = `/api/v2/workspacebuilds/${latest_build.id}`;
  const follow = (after: number, client = world.admin) =>
    client.fetch("GET", `${build}/logs?follow=true&after=${after}`, undefined, {
      headers: { accept: "text/event-stream" },
    });
  const outputs: string[] = [];
  const ids: number[] = [];
  let last = "";
  for await (const { event, data } of readEvents<JobLog>(await follow(0))) {
    last = event;
    if (data === undefined || event === "end") continue;
    outputs.push(data.output);
    ids.push(data.id);
    if (data.output === "three") await world.admin.patch(`${build}/cancel`);
  }
  expect(last).toBe("end");
  expect(outputs.slice(0, 3)).toEqual(["one", "two", "three"]);
  const stored = await world.admin.get<JobLog[]>(`${build}/logs`);
  expect(ids).toEqual(stored.map((line) => line.id));
  const rest: string[] = [];
  for await (const { event, data } of readEvents<JobLog>(await follow(ids[1] as number))) {
    if (event === "data") rest.push(data?.output ?? "");
  }
  expect(rest).toEqual(outputs.slice(2));
  const { organization_id } = await world.admin.get<{ organization_id: string }>(`/api/v2/workspaces/${id}`);
  const { token } = await seedUser(world.server, { organization_id });
  expect((await follow(0, world.admin.withToken(token))).status).toBe(404);
});
