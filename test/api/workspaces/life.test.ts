// The life of a workspace over HTTP: created, running, stopped, deleted. The server is real; the provisioner `echo` starts nothing.
import { expect, test } from "bun:test";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { ApiError } from "#src/client.ts";
import {
  awaitBuild,
  awaitWorkspace,
  createBuild,
  createWorkspace,
  drainSocket,
  ECHO,
  openWorld,
  seedTemplate,
} from "#test/support/workspaces.ts";

const awaitApiError = async (promise: Promise<unknown>): Promise<ApiError> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiError)) throw new Error(`expected an API error, got ${error}`);
  return error;
};

test("[WK-1] the response to a create has the pending first build; when it succeeds, the workspace runs with its agents", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const created = await createWorkspace(world.admin, template_id);
  expect(created).toMatchObject({
    name: "dev",
    owner_name: "admin",
    template_id,
    outdated: false,
    health: { healthy: true, failing_agents: [] },
    latest_build: { build_number: 1, transition: "start", reason: "initiator", initiator_name: "admin" },
  });
  const running = await awaitBuild(world.admin, created.id);
  expect(running.latest_build.status).toBe("running");
  expect(running.latest_build.job.status).toBe("succeeded");
  const [agent] = running.latest_build.resources[0]?.agents ?? [];
  expect(agent).toMatchObject({ name: "dev", status: "connecting", lifecycle_state: "created" });
  const reloaded = await world.admin.get<Workspace>(`/api/v2/workspaces/${created.id}`);
  expect(reloaded).toEqual(running);
  expect(await world.admin.get<Workspace>("/api/v2/users/me/workspace/DEV")).toEqual(running);
});

test("[WK-2] builds have consecutive numbers; a deleted workspace returns 410 or 404 unless the request includes deleted ones", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  const { latest_build: startBuild } = await awaitBuild(world.admin, id);
  const stop = await createBuild(world.admin, id, "stop", { reason: "cli" });
  expect(stop).toMatchObject({ build_number: 2, transition: "stop", reason: "cli" });
  const stopped = await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "stopped");
  expect(stopped.latest_build.resources).toEqual([]);
  expect((await world.admin.get<Build>(`/api/v2/workspacebuilds/${startBuild.id}`)).resources).toHaveLength(1);
  await createBuild(world.admin, id, "delete");
  await awaitWorkspaceDeleted(world.admin, id);
  expect((await awaitApiError(world.admin.get(`/api/v2/workspaces/${id}`))).status).toBe(410);
  expect((await awaitApiError(world.admin.get("/api/v2/users/me/workspace/dev"))).status).toBe(404);
  const deleted = await world.admin.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
  expect(deleted.latest_build).toMatchObject({ status: "deleted", build_number: 3 });
  const deletedByName = await world.admin.get<Workspace>("/api/v2/users/me/workspace/dev?include_deleted=true");
  expect(deletedByName.id).toBe(id);
  expect((await createWorkspace(world.admin, template_id)).id).not.toBe(id);
  expect((await awaitApiError(createBuild(world.admin, id, "start"))).status).toBe(409);
  const builds = await world.admin.get<Build[]>(`/api/v2/workspaces/${id}/builds`);
  expect(builds.map((build) => build.build_number)).toEqual([3, 2, 1]);
  const secondPage = await world.admin.get<Build[]>(
    `/api/v2/workspaces/${id}/builds?limit=1&after_id=${builds[0]?.id}`,
  );
  expect(secondPage.map((build) => build.build_number)).toEqual([2]);
  const firstBuild = await world.admin.get<Build>("/api/v2/users/me/workspace/dev/builds/1");
  expect(firstBuild.build_number).toBe(1);
});

const awaitWorkspaceDeleted = async (client: Parameters<typeof awaitBuild>[0], id: string): Promise<void> => {
  await awaitWorkspace(client, id, ({ latest_build }) => latest_build.status === "deleted").catch(() => undefined);
};

test("[WK-3] a second build during an active one returns 409, and so does a taken name, ignoring case", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { hang: true } });
  const { id } = await createWorkspace(world.admin, template_id);
  expect((await awaitApiError(createBuild(world.admin, id, "stop"))).status).toBe(409);
  const takenError = await awaitApiError(createWorkspace(world.admin, template_id, "DEV"));
  expect(takenError.status).toBe(409);
  expect(takenError.body.validations).toEqual([{ field: "name", detail: "must be unique" }]);
});

test("[WK-4] a running build that is canceled ends as canceled, and its log can be followed to the end", async () => {
  await using world = await openWorld();
  const logs = Array.from({ length: 700 }, (_, i) => `line ${i}`);
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { hang: true, logs } });
  const { id } = await createWorkspace(world.admin, template_id);
  const starting = await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "starting");
  const build = starting.latest_build;
  using follower = await world.admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow`);
  await follower.next();
  const wrongStatusError = await awaitApiError(
    world.admin.patch(`/api/v2/workspacebuilds/${build.id}/cancel?expect_status=pending`),
  );
  expect(wrongStatusError.status).toBe(412);
  await world.admin.patch(`/api/v2/workspacebuilds/${build.id}/cancel?expect_status=running`);
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.status).toBe("canceled");
  expect(latest_build.job.canceled_at).toBeDefined();
  const { messages, closed } = await drainSocket(follower);
  expect(closed.code).toBe(1000);
  const lines = messages as { id: number; output: string }[];
  expect(lines.map((line) => line.output)).toEqual(logs.slice(1));
  const stored = await world.admin.get<{ id: number; output: string }[]>(`/api/v2/workspacebuilds/${build.id}/logs`);
  expect(stored.map((line) => line.output)).toEqual(logs);
  const tail = await world.admin.get<unknown[]>(`/api/v2/workspacebuilds/${build.id}/logs?after=${stored[697]?.id}`);
  expect(tail).toHaveLength(2);
  const textResponse = await world.admin.fetch("GET", `/api/v2/workspacebuilds/${build.id}/logs?format=text`);
  expect((await textResponse.text()).split("\n")[0]).toEndWith("line 0");
  expect((await awaitApiError(world.admin.patch(`/api/v2/workspacebuilds/${build.id}/cancel`))).status).toBe(400);
});

test("[WK-5] a failed build shows the reason, and the workspace can be started again", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { error: "no machine is free" } });
  const { id } = await createWorkspace(world.admin, template_id);
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build).toMatchObject({ status: "failed", job: { error: "no machine is free" }, resources: [] });
  expect((await createBuild(world.admin, id, "start")).build_number).toBe(2);
});

test("[WK-6] [JB-8] a job that no worker matches stays pending outside the queue, and a cancel ends it immediately", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server, { ...ECHO, tags: { gpu: "yes" } });
  const { latest_build } = await createWorkspace(world.admin, template_id);
  expect(latest_build).toMatchObject({ status: "pending", matched_provisioners: { count: 0, available: 0 } });
  expect(latest_build.job.available_workers).toEqual([]);
  await world.admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel?expect_status=pending`);
  const canceled = await world.admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`);
  expect(canceled.status).toBe("canceled");
});
