// Commits that are on disk although the database could not say so: nobody was told of them, and whoever asks again finds them.
import { expect, setDefaultTimeout, spyOn } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Statement } from "#db/engine/sql.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import { listOpenImports } from "#db/templates/versions.ts";
import { listOpenBuilds } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import type { AgentLog } from "#schema/agents/agent-log.ts";
import { Client } from "#src/client.ts";
import { testInside } from "#test/support/inside.ts";
import { contextOf, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, openWorld, seedTemplate } from "#test/support/workspaces.ts";

setDefaultTimeout(30_000);

/** The first commit after which `isIt` says so arrives, and its answer is lost. */
const loseOne = (store: Store, isIt: (batch: readonly Statement[]) => Promise<boolean>) => {
  const commit = store.commit.bind(store);
  const lost = { count: 0 };
  const spy = spyOn(store, "commit").mockImplementation(async (...args) => {
    await commit(...args);
    if (lost.count > 0 || !(await isIt(args[0]))) return;
    lost.count += 1;
    throw new CommitError("unknown", "the write could not be confirmed");
  });
  return {
    lost,
    [Symbol.dispose]: () => spy.mockRestore(),
  };
};

testInside("[CP-56] a build whose beginning was not confirmed is worked on, once", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { admin, server } = world;
  const { template_id } = await seedTemplate(server);
  const { store } = contextOf(server);
  using losing = loseOne(store, async () => {
    const [open] = await store.all(listOpenBuilds(undefined));
    const job = open && (await store.get(findJob({ id: open.job_id })));
    return (job?.started_at ?? null) !== null;
  });
  const { id, latest_build } = await createWorkspace(admin, template_id);
  const built = await awaitBuild(admin, id);
  expect([losing.lost.count, built.latest_build.job.status]).toEqual([1, "succeeded"]);
  const job = await store.get(findJob({ id: latest_build.job.id }));
  expect(job?.attempts).toBe(1);
});

testInside("[CP-56] an import whose beginning was not confirmed is worked on, once", async () => {
  await using world = await openWorld({ clock: systemClock });
  const { store } = contextOf(world.server);
  using losing = loseOne(store, async () => {
    const [open] = await store.all(listOpenImports(undefined));
    const job = open && (await store.get(findJob({ id: open.job_id })));
    return (job?.started_at ?? null) !== null;
  });
  await makeTemplate(world.admin);
  expect(losing.lost.count).toBe(1);
});

testInside(
  "[CP-56] who follows lines of an agent is sent away where some may be stored that nobody was told",
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
    const { sockets, store } = contextOf(server);
    using socket = await owner.socket(`${path}?follow=true`);
    expect(await socket.json<AgentLog[]>()).toEqual([]);
    await until(() => sockets.followers === 1);
    {
      using _ = loseOne(store, async (batch) => batch.some(({ sql }) => sql.includes("agent_logs")));
      expect((await write("one")).status).toBeGreaterThanOrEqual(500);
    }
    expect((await write("one")).status).toBe(200);
    expect((await socket.closed).code).toBe(1013);
    using again = await owner.socket(`${path}?follow=true`);
    expect((await again.json<AgentLog[]>()).map(({ output }) => output)).toEqual(["one"]);
  },
);
