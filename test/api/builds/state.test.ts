// The state of builds: read, replaced after a repair, passed to the next build; and builds for which there is no worker.
import { expect, test } from "bun:test";
import type { Build } from "#schema/workspaces/build.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Client } from "#src/client.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const textAt = async (client: Client, path: string): Promise<string> => (await client.fetch("GET", path)).text();
const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("[BD-5] template admins read and replace the state of a build; the next build keeps it", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(server);
  const userClient = admin.withToken((await seedUser(server, { organization_id })).token);
  const { id, latest_build } = await createWorkspace(userClient, template_id);
  await awaitBuild(admin, id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await textAt(admin, path)).toBe("echo");
  expect(await awaitStatus(userClient.get(path))).toBe(403);
  expect(await awaitStatus(userClient.put(path, { state: base64("x") }))).toBe(403);
  expect(await awaitStatus(admin.put(path, { state: "not base64!" }))).toBe(400);
  await admin.put(path, { state: base64("repaired") });
  expect(await textAt(admin, path)).toBe("repaired");
  const next = await createBuild(admin, id, "start");
  await awaitBuild(admin, id);
  // The test provisioner returns what it was given.
  expect(await textAt(admin, `/api/v2/workspacebuilds/${next.id}/state`)).toBe("repaired");
  await admin.put(path, { state: "" });
  expect(await textAt(admin, path)).toBe("");
});

test("[BD-5] a key with scopes neither reads nor replaces a state, which holds secrets of the workspace's owner", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server);
  const { id, latest_build } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const scopes = ["workspace:update", "workspace:start", "workspace:read", "workspace:ssh"];
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
  const narrow = admin.withToken(key);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await awaitStatus(narrow.get(path))).toBe(403);
  expect(await awaitStatus(narrow.put(path, { state: "" }))).toBe(403);
  expect(await awaitStatus(createBuild(narrow, id, "start", { state: base64("x") }))).toBe(403);
  expect(await textAt(admin, path)).toBe("echo");
});

test("[BD-5] a state may have 16 MiB, the limit for builds; a larger one is refused and nothing changes", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server);
  const { id, latest_build } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  const largestState = "0123456789abcdef".repeat(1024 * 1024);
  await admin.put(path, { state: base64(largestState) });
  expect((await textAt(admin, path)) === largestState).toBe(true);
  expect(await awaitStatus(admin.put(path, { state: base64(`${largestState}wxyz`) }))).toBe(400);
  const answer = await admin.fetch("PUT", path, { state: base64(largestState + largestState.slice(0, 8192)) });
  expect(answer.status).toBe(413);
  expect((await textAt(admin, path)) === largestState).toBe(true);
});

test("[BD-5] not while a build is active", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { hang: true } });
  const { latest_build } = await createWorkspace(world.admin, template_id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await awaitStatus(world.admin.put(path, { state: "" }))).toBe(409);
});

test("[BD-6] a build's state is replaced, and more is logged on request", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(server, {
    ...ECHO,
    parameters: [{ name: "size", default: "small" }],
  });
  const mine = admin.withToken((await seedUser(server, { organization_id })).token);
  const { id } = await createWorkspace(mine, template_id);
  await awaitBuild(admin, id);
  expect(await awaitStatus(createBuild(mine, id, "start", { state: base64("other") }))).toBe(403);
  expect(await awaitStatus(createBuild(admin, id, "start", { state: "?" }))).toBe(400);
  const build = await createBuild(admin, id, "start", { state: base64("other"), log_level: "debug" });
  await awaitBuild(admin, id);
  expect(await textAt(admin, `/api/v2/workspacebuilds/${build.id}/state`)).toBe("other");
  const logs = await admin.get<JobLog[]>(`/api/v2/workspacebuilds/${build.id}/logs`);
  expect(logs.filter(({ log_level }) => log_level === "debug").map(({ output }) => output)).toEqual([
    "Build 2, start, by the provisioner echo.",
    "Parameters: size.",
    "Resources: main.",
    "The previous build left 5 characters of state.",
  ]);
});

test("[BD-4] an orphaning delete of a workspace whose worker is permanently gone ends it immediately", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const external = { ...ECHO, provisioner: "external" as const, external: { provisioner: "echo" as const } };
  const { template_id } = await seedTemplate(server, external);
  const { id, latest_build } = await createWorkspace(admin, template_id);
  await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
  const build = await createBuild(admin, id, "delete", { orphan: true });
  using follower = await admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow=true`);
  expect((await follower.closed).code).toBe(1000);
  expect((await admin.get<Build>(`/api/v2/workspacebuilds/${build.id}`)).status).toBe("deleted");
});
