// Commits that are on disk although the database's confirmation was lost: they were not acknowledged, and a retry finds them.
import { expect, spyOn } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { ALL_ROWS } from "#db/own-rows.ts";
import { listOpenImports } from "#db/templates/versions.ts";
import { listOpenBuilds } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { createChat, Follower, openChatWorld, toTextContent } from "#test/support/chats.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { ECHO, makeTemplate, uniqueText, uploadFiles } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import {
  awaitBuild,
  createBuild,
  createWorkspace,
  drainSocket,
  openWorld,
  seedTemplate,
} from "#test/support/workspaces.ts";

/** Loses the confirmation of the first commit for which `shouldLose` returns true. */
const loseConfirmation = (store: Store, shouldLose: (batch: readonly Statement[]) => Promise<boolean>) => {
  const commit = store.commit.bind(store);
  const lost = { count: 0 };
  const spy = spyOn(store, "commit").mockImplementation(async (...args) => {
    await commit(...args);
    if (lost.count > 0 || !(await shouldLose(args[0]))) return;
    lost.count += 1;
    throw new CommitError("unknown", "the write could not be confirmed");
  });
  return {
    lost,
    [Symbol.dispose]: () => spy.mockRestore(),
  };
};

testInProcess("[CP-56] a build whose start was not confirmed runs once", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { admin, server } = world;
  const { template_id } = await seedTemplate(server);
  const { store } = getContext(server);
  using loss = loseConfirmation(store, async () => {
    const [openJob] = await store.all(listOpenBuilds({}, ALL_ROWS));
    const job = openJob && (await store.get(findJob({ id: openJob.job_id })));
    return (job?.started_at ?? null) !== null;
  });
  const { id, latest_build } = await createWorkspace(admin, template_id);
  const built = await awaitBuild(admin, id);
  expect([loss.lost.count, built.latest_build.job.status]).toEqual([1, "succeeded"]);
  const job = await store.get(findJob({ id: latest_build.job.id }));
  expect(job?.attempts).toBe(1);
});

testInProcess("[CP-56] an import whose start was not confirmed runs once", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { store } = getContext(world.server);
  using loss = loseConfirmation(store, async () => {
    const [openJob] = await store.all(listOpenImports({}, ALL_ROWS));
    const job = openJob && (await store.get(findJob({ id: openJob.job_id })));
    return (job?.started_at ?? null) !== null;
  });
  await makeTemplate(world.admin);
  expect(loss.lost.count).toBe(1);
});

testInProcess("[CP-56] a build and an import that were never announced run automatically", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { admin, server } = world;
  const { template_id, organization_id } = await seedTemplate(server);
  const { store } = getContext(server);
  const isInsertInto = (table: string) => async (batch: readonly Statement[]) =>
    batch.some(({ sql }) => sql.includes("insert") && sql.includes(`"${table}"`));
  {
    using _ = loseConfirmation(store, isInsertInto("workspace_builds"));
    const response = await admin.fetch("POST", "/api/v2/users/me/workspaces", { name: "lost", template_id });
    expect(response.status).toBe(500);
    await until(async () => (await store.all(listOpenBuilds({}, ALL_ROWS))).length === 0);
  }
  const { latest_build } = await admin.get<Workspace>("/api/v2/users/me/workspace/lost");
  expect(latest_build.job.status).toBe("succeeded");
  const file_id = await uploadFiles(admin, { "template.yaml": ECHO + uniqueText() });
  {
    using _ = loseConfirmation(store, isInsertInto("template_versions"));
    const path = `/api/v2/organizations/${organization_id}/templateversions`;
    const response = await admin.fetch("POST", path, { name: "lost", template_id, storage_method: "file", file_id });
    expect(response.status).toBe(500);
    await until(async () => (await store.all(listOpenImports({}, ALL_ROWS))).length === 0);
  }
});

testInProcess(
  "[CP-56] a build log's follower gets each line once, and its end, although they were not confirmed",
  async () => {
    await using world = await openWorld({ clock: systemClock });
    const { admin, server } = world;
    const { template_id } = await seedTemplate(server);
    const { store } = getContext(server);
    const { id } = await createWorkspace(admin, template_id);
    await awaitBuild(admin, id);
    let hasStarted = false;
    const conditions: ((batch: readonly Statement[]) => Promise<boolean>)[] = [
      async (batch) => batch.some(({ sql }) => sql.includes('insert into "job_logs"')),
      // The batch that ends the build.
      async () => {
        const openBuildCount = (await store.all(listOpenBuilds({}, ALL_ROWS))).length;
        hasStarted ||= openBuildCount > 0;
        return hasStarted && openBuildCount === 0;
      },
    ];
    for (const shouldLose of conditions) {
      hasStarted = false;
      using loss = loseConfirmation(store, shouldLose);
      const build = await createBuild(admin, id, "start", { log_level: "debug" });
      using socket = await admin.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow=true`);
      const { messages, closed } = await drainSocket(socket);
      expect([closed.code, loss.lost.count]).toEqual([1000, 1]);
      const outputs = (messages as JobLog[]).map(({ output }) => output);
      expect([outputs.length > 0, outputs]).toEqual([true, [...new Set(outputs)]]);
    }
  },
);

testInProcess("[CP-56] a chat's follower gets a message whose commit was not confirmed", async () => {
  await using world = await openChatWorld({ clock: systemClock });
  const { id } = await createChat(world, "one");
  using follower = await Follower.open(world.owner, id);
  (await world.models.next()).say("a").finish();
  await follower.until(({ status }) => status === "waiting");
  const { store } = getContext(world.server);
  using loss = loseConfirmation(store, async (batch) =>
    batch.some(({ sql }) => sql.includes('insert into "messages"')),
  );
  const response = await world.owner.fetch("POST", `/api/v2/chats/${id}/messages`, { content: toTextContent("two") });
  expect([response.status, loss.lost.count]).toEqual([500, 1]);
  (await world.models.next()).say("b").finish();
  await follower.until(({ history }) => history.length === 4);
  expect(follower.history).toEqual(["user: one", "assistant: a", "user: two", "assistant: b"]);
});

testInProcess(
  "[CP-56] a follower of an agent's lines is disconnected if stored lines may not have been delivered",
  async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const owner = new Client(server.url, seeded.owner_token);
    const agent = new Client(server.url, seeded.agent_token);
    const path = `/api/v2/workspaceagents/${seeded.agent_id}/logs`;
    const write = (output: string) =>
      agent.fetch(
        "PATCH",
        "/api/v2/workspaceagents/me/logs",
        { logs: [{ output }] },
        { headers: { "Idempotency-Key": output } },
      );
    const { sockets, store } = getContext(server);
    using socket = await owner.socket(`${path}?follow=true`);
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await until(() => sockets.followers === 1);
    {
      using _ = loseConfirmation(store, async (batch) => batch.some(({ sql }) => sql.includes("agent_logs")));
      expect((await write("one")).status).toBeGreaterThanOrEqual(500);
    }
    expect((await write("one")).status).toBe(200);
    expect((await socket.closed).code).toBe(1013);
    using reconnected = await owner.socket(`${path}?follow=true`);
    expect((await reconnected.json<AgentLog[]>()).map(({ output }) => output)).toEqual(["one"]);
  },
);

testInProcess("[LG-8] a follower that joins while lines are stored but not yet delivered sees them once", async () => {
  await using server = await startTestServer({ clock: systemClock });
  const seeded = await seedAgent(server);
  const owner = new Client(server.url, seeded.owner_token);
  const agent = new Client(server.url, seeded.agent_token);
  const write = (output: string) => agent.fetch("PATCH", "/api/v2/workspaceagents/me/logs", { logs: [{ output }] });
  const { sockets, store } = getContext(server);
  const commit = store.commit.bind(store);
  const deliveryAllowed = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<void>();
  const spy = spyOn(store, "commit").mockImplementation(async (...args) => {
    await commit(...args);
    if (!args[0].some(({ sql }) => sql.includes("agent_logs"))) return;
    stored.resolve();
    await deliveryAllowed.promise;
  });
  const first = write("one");
  await stored.promise;
  using socket = await owner.socket(`/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true`);
  const nextOutputs = async () => (await socket.json<AgentLog[]>()).map(({ output }) => output);
  expect(await nextOutputs()).toEqual(["one"]);
  await until(() => sockets.followers === 1);
  deliveryAllowed.resolve();
  await first;
  spy.mockRestore();
  await write("two");
  expect(await nextOutputs()).toEqual(["two"]);
  await write("three");
  expect([await nextOutputs(), sockets.followers]).toEqual([["three"], 1]);
});
