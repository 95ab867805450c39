// Builds: their parameters, resources, access and logs.
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

test("[BD-1] keeps omitted parameters, rejects changes of immutable ones, and resets ephemeral ones", async () => {
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
  const changedRegion = createBuild(admin, id, "start", { rich_parameter_values: [{ name: "region", value: "us" }] });
  expect(await awaitStatus(changedRegion)).toBe(400);
  const secondStart = await createBuild(admin, id, "start");
  expect(await listParameters(secondStart.id)).toEqual([
    { name: "region", value: "eu" },
    { name: "reset", value: "false" },
    { name: "size", value: "big" },
  ]);
});

test("[BD-2] returns a build's resources and timings with sensitive metadata blank; a preset sets its parameters", async () => {
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
  const presetId = toPresetId(version_id, "Large");
  const { id, latest_build } = await createWorkspace(admin, template_id, "dev", {
    template_version_preset_id: presetId,
  });
  const running = await awaitBuild(admin, id);
  expect(running.latest_build).toMatchObject({ daily_cost: 7, template_version_preset_id: presetId });
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

test("[BD-3] returns 404 for a hidden build, 403 for a forbidden action, and 400 for an invalid request", async () => {
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
  const ownerClient = admin.withToken(owner.token);
  const { id, latest_build } = await createWorkspace(ownerClient, template_id);
  const outsider = admin.withToken((await seedUser(server, { organization_id })).token);
  const build = `/api/v2/workspacebuilds/${latest_build.id}`;
  for (const path of [build, `${build}/logs`, `${build}/parameters`, `${build}/resources`, `${build}/timings`]) {
    expect([path, await awaitStatus(outsider.get(path))]).toEqual([path, 404]);
    expect([path, await awaitStatus(ownerClient.get(path))]).toEqual([path, 200]);
  }
  expect(await awaitStatus(createBuild(outsider, id, "stop"))).toBe(404);
  expect(await awaitStatus(outsider.patch(`${build}/cancel`))).toBe(404);
  expect(await awaitStatus(ownerClient.patch(`${build}/cancel`))).toBe(403);
  expect(await awaitStatus(ownerClient.patch(`${build}/cancel?expect_status=soon`))).toBe(400);
  const invalidRequests: [Client, object, number][] = [
    [ownerClient, { transition: "dance" }, 400],
    [ownerClient, { transition: "stop", orphan: true }, 400],
    [ownerClient, { transition: "delete", orphan: true }, 403],
    [ownerClient, { transition: "start", log_level: "debug" }, 403],
    [ownerClient, { transition: "start", dry_run: true }, 400],
    [ownerClient, { transition: "start", template_version_id: uuid() }, 404],
    [ownerClient, { transition: "start" }, 409],
  ];
  for (const [client, body, status] of invalidRequests) {
    expect([body, await awaitStatus(client.post<unknown>(`/api/v2/workspaces/${id}/builds`, body))]).toEqual([
      body,
      status,
    ]);
  }
  expect(await awaitStatus(admin.patch(`${build}/cancel`))).toBe(200);
  const otherTemplate = await seedTemplate(server);
  const foreignBuild = createBuild(admin, id, "start", { template_version_id: otherTemplate.version_id });
  expect(await awaitStatus(foreignBuild)).toBe(404);
});

test("[BD-4] an orphaning delete deletes the workspace without a provisioner", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const build = await createBuild(world.admin, id, "delete", { orphan: true });
  using follower = await world.admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow=true`);
  expect((await follower.closed).code).toBe(1000);
  const deletedBuild = await world.admin.get<Build>(`/api/v2/workspacebuilds/${build.id}`);
  expect(deletedBuild.status).toBe("deleted");
});

test("[BD-7] streams log lines after the cursor as events, then new lines, and `end` after the job", async () => {
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
  let lastEvent = "";
  for await (const { event, data } of readEvents<JobLog>(await follow(0))) {
    lastEvent = event;
    if (data === undefined || event === "end") continue;
    outputs.push(data.output);
    ids.push(data.id);
    if (data.output === "three") await world.admin.patch(`${build}/cancel`);
  }
  expect(lastEvent).toBe("end");
  expect(outputs.slice(0, 3)).toEqual(["one", "two", "three"]);
  const stored = await world.admin.get<JobLog[]>(`${build}/logs`);
  expect(ids).toEqual(stored.map((line) => line.id));
  const remaining: string[] = [];
  for await (const { event, data } of readEvents<JobLog>(await follow(ids[1] as number))) {
    if (event === "data") remaining.push(data?.output ?? "");
  }
  expect(remaining).toEqual(outputs.slice(2));
  const { organization_id } = await world.admin.get<{ organization_id: string }>(`/api/v2/workspaces/${id}`);
  const { token } = await seedUser(world.server, { organization_id });
  expect((await follow(0, world.admin.withToken(token))).status).toBe(404);
});
