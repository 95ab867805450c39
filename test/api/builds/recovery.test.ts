// A server that has just started resumes open builds while it already accepts new ones.
import { expect } from "bun:test";
import { recoverBuilds } from "#actors/workspace/recovery.ts";
import { ALL_ROWS } from "#db/own-rows.ts";
import type { Build } from "#schema/workspaces/build.ts";
import { testInside } from "#test/support/inside.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

testInside("[WK-15] a build requested after the start continues while open ones are resumed", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { template_id } = await seedTemplate(server, { ...ECHO, echo: { logs: ["begin"], hang: true } });
  const { id, latest_build } = await createWorkspace(admin, template_id);
  const read = () => admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`);
  const running = await until(async () => {
    const { job } = await read();
    return job.status === "running" ? job : undefined;
  });
  const worker = server.contexts.find(({ jobs }) => jobs.hasLocally(running.id));
  if (!worker) throw new Error("no node runs it");
  await recoverBuilds(worker, ALL_ROWS);
  expect((await read()).job).toMatchObject({ status: "running", started_at: running.started_at });
  await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
  expect((await awaitBuild(admin, id)).latest_build.job.status).toBe("canceled");
});
