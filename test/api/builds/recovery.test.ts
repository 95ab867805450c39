// A server resumes unfinished builds after its start, while it already accepts new ones.
import { expect } from "bun:test";
import { recoverBuilds } from "#actors/workspace/recovery.ts";
import { ALL_ROWS } from "#db/own-rows.ts";
import type { Build } from "#schema/workspaces/build.ts";
import { testInProcess } from "#test/support/in-process.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

testInProcess(
  "[WK-15] recovery of unfinished builds does not disturb a build that was requested after the start",
  async () => {
    await using world = await openWorld();
    const { admin, server } = world;
    const { template_id } = await seedTemplate(server, { ...ECHO, echo: { logs: ["begin"], hang: true } });
    const { id, latest_build } = await createWorkspace(admin, template_id);
    const getBuild = () => admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`);
    const running = await until(async () => {
      const { job } = await getBuild();
      return job.status === "running" ? job : undefined;
    });
    const worker = server.contexts.find(({ jobs }) => jobs.hasLocally(running.id));
    if (!worker) throw new Error("no node runs the job");
    await recoverBuilds(worker, ALL_ROWS);
    expect((await getBuild()).job).toMatchObject({ status: "running", started_at: running.started_at });
    await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
    expect((await awaitBuild(admin, id)).latest_build.job.status).toBe("canceled");
  },
);
