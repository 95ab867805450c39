// The state of builds: reading it, replacing it, and passing it to the next build. Also deletes a workspace without its worker.
import { expect, test } from "bun:test";
import type { Build } from "#schema/workspaces/build.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Client } from "#src/client.ts";
import { awaitStatus } from "#test/support/net/status.ts";
import { seedUser } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const getText = async (client: Client, path: string): Promise<string> => (await client.fetch("GET", path)).text();
const encodeBase64 = (text: string): string => Buffer.from(text).toString("base64");

test("[BD-5] template admins read and replace the state of a build; the next build keeps it", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(server);
  const userClient = admin.withToken((await seedUser(server, { organization_id })).token);
  const { id, latest_build } = await createWorkspace(userClient, template_id);
  await awaitBuild(admin, id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await getText(admin, path)).toBe("echo");
  expect(await awaitStatus(userClient.get(path))).toBe(403);
  expect(await awaitStatus(userClient.put(path, { state: encodeBase64("x") }))).toBe(403);
  expect(await awaitStatus(admin.put(path, { state: "not base64!" }))).toBe(400);
  await admin.put(path, { state: encodeBase64("repaired") });
  expect(await getText(admin, path)).toBe("repaired");
  const nextBuild = await createBuild(admin, id, "start");
  await awaitBuild(admin, id);
  // The test provisioner returns what it was given.
  expect(await getText(admin, `/api/v2/workspacebuilds/${nextBuild.id}/state`)).toBe("repaired");
  await admin.put(path, { state: "" });
  expect(await getText(admin, path)).toBe("");
});

test("[BD-5] a scoped key can neither read nor replace a state, which contains the owner's secrets", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server);
  const { id, latest_build } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const scopes = ["workspace:update", "workspace:start", "workspace:read", "workspace:ssh"];
  const { key } = await admin.post<{ key: string }>("/api/v2/users/me/keys/tokens", { scopes });
  const scopedClient = admin.withToken(key);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await awaitStatus(scopedClient.get(path))).toBe(403);
  expect(await awaitStatus(scopedClient.put(path, { state: "" }))).toBe(403);
  expect(await awaitStatus(createBuild(scopedClient, id, "start", { state: encodeBase64("x") }))).toBe(403);
  expect(await getText(admin, path)).toBe("echo");
});

test("[BD-5] accepts a state of 16 MiB, the limit for builds, and rejects a larger one without a change", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const { template_id } = await seedTemplate(world.server);
  const { id, latest_build } = await createWorkspace(admin, template_id);
  await awaitBuild(admin, id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  const largestState = "0123456789abcdef".repeat(1024 * 1024);
  await admin.put(path, { state: encodeBase64(largestState) });
  expect((await getText(admin, path)) === largestState).toBe(true);
  expect(await awaitStatus(admin.put(path, { state: encodeBase64(`${largestState}wxyz`) }))).toBe(400);
  const response = await admin.fetch("PUT", path, { state: encodeBase64(largestState + largestState.slice(0, 8192)) });
  expect(response.status).toBe(413);
  expect((await getText(admin, path)) === largestState).toBe(true);
});

test("[BD-5] rejects a new state while a build is active", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { hang: true } });
  const { latest_build } = await createWorkspace(world.admin, template_id);
  const path = `/api/v2/workspacebuilds/${latest_build.id}/state`;
  expect(await awaitStatus(world.admin.put(path, { state: "" }))).toBe(409);
});

test("[BD-6] template admins can start a build with another state and a verbose log", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(server, {
    ...ECHO,
    parameters: [{ name: "size", default: "small" }],
  });
  const ownerClient = admin.withToken((await seedUser(server, { organization_id })).token);
  const { id } = await createWorkspace(ownerClient, template_id);
  await awaitBuild(admin, id);
  expect(await awaitStatus(createBuild(ownerClient, id, "start", { state: encodeBase64("other") }))).toBe(403);
  expect(await awaitStatus(createBuild(admin, id, "start", { state: "?" }))).toBe(400);
  const build = await createBuild(admin, id, "start", { state: encodeBase64("other"), log_level: "debug" });
  await awaitBuild(admin, id);
  expect(await getText(admin, `/api/v2/workspacebuilds/${build.id}/state`)).toBe("other");
  const logs = await admin.get<JobLog[]>(`/api/v2/workspacebuilds/${build.id}/logs`);
  expect(logs.filter(({ log_level }) => log_level === "debug").map(({ output }) => output)).toEqual([
    "Build 2, start, by the provisioner echo.",
    "Parameters: size.",
    "Resources: main.",
    "The previous build left 5 characters of state.",
  ]);
});

test("[BD-4] an orphaning delete deletes a workspace whose worker no longer exists", async () => {
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
