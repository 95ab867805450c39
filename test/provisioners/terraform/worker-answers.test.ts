// Wrong or missing messages of a Terraform worker. The test speaks the protocol on a plain socket.
import { expect } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { makeTerraformTemplate, openTerraformWorld } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { type JobMessage, makeKey, openWorker } from "#test/support/worker.ts";
import { awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const MAIN = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace_tags" "where" {
  tags = { "region" = "eu" }
}
`;
const makeState = (serial: number, lineage = "a"): string =>
  JSON.stringify({ version: 4, serial, lineage, resources: [], outputs: {} });
const BUILD_RESULT = { resources: [], daily_cost: 0, secrets: [] };

testNeeding(
  [needs.terraform],
  "[TF-40] a worker's state replaces only an older state; a workspace with an unknown result waits for its worker",
  async () => {
    await using world = await openTerraformWorld();
    const { admin } = world;
    const { key } = await makeKey(admin);
    const { template } = await makeTerraformTemplate(admin, { "main.tf": MAIN }, "answers");
    const openTerraformWorker = (name: string) =>
      openWorker(world.server.url, key, {
        name,
        provisioners: "terraform",
        tags: "region=eu",
        places: `terraform=${name}`,
      });
    const first = await openTerraformWorker("first");
    const receiveJob = async ({ socket }: typeof first): Promise<string> => {
      for (;;) {
        const message = await socket.json<JobMessage>();
        if (message.type === "job") return message.request.job_id;
      }
    };
    const { id } = await createWorkspace(admin, template.id);
    const fetchState = async ({ latest_build }: Workspace): Promise<string> =>
      (await admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
    const runBuild = async (transition: "start" | "stop" | "delete", makeMessages: (job_id: string) => object[]) => {
      if (transition !== "start") await createBuild(admin, id, transition);
      const job_id = await receiveJob(first);
      for (const message of makeMessages(job_id)) first.say(message);
      const ended = await awaitWorkspace(admin, id, ({ latest_build }) =>
        ["succeeded", "failed"].includes(latest_build.job.status),
      );
      return [ended.latest_build.job.status, await fetchState(ended)];
    };
    const makeStateMessage = (job_id: string, text: string): object => ({ type: "left", job_id, text });
    const good = makeState(3);
    // The server ignores a state and a failure that arrive after the job has ended.
    const started = await runBuild("start", (job_id) => [
      makeStateMessage(job_id, good),
      { type: "done", job_id, state: null, has_left: true, made: BUILD_RESULT },
      makeStateMessage(job_id, makeState(9)),
      { type: "failed", job_id, error: "no", code: "", has_left: true },
    ]);
    expect(started).toEqual(["succeeded", good]);
    const refused: ((job_id: string) => object[])[] = [
      (job_id) => [{ type: "done", job_id, state: null }],
      (job_id) => [makeStateMessage(job_id, "no state"), { type: "done", job_id, state: null, has_left: true }],
      (job_id) => [
        makeStateMessage(job_id, makeState(2)),
        { type: "failed", job_id, error: "x", code: "", has_left: true },
      ],
      (job_id) => [
        makeStateMessage(job_id, makeState(7, "b")),
        { type: "failed", job_id, error: "x", code: "", has_left: true },
      ],
      (job_id) => [{ type: "failed", job_id, error: "x", code: "", has_left: true }],
    ];
    for (const makeMessages of refused) expect(await runBuild("stop", makeMessages)).toEqual(["failed", good]);

    // The last build's result is unknown, so another worker with the tags does not run the next build.
    first.socket[Symbol.dispose]();
    const second = await openTerraformWorker("second");
    const pendingBuild = await createBuild(admin, id, "stop");
    await until(async () =>
      JSON.stringify(await admin.get(`/api/v2/workspacebuilds/${pendingBuild.id}/logs`)).includes(
        "where the workspace lives",
      ),
    );
    // A person cancels the build, so that the other worker can delete the workspace.
    await admin.patch(`/api/v2/workspacebuilds/${pendingBuild.id}/cancel`);
    await createBuild(admin, id, "delete");
    const job_id = await receiveJob(second);
    second.say({ type: "done", job_id, state: null });
    const deleted = await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.job.status === "succeeded");
    expect(deleted.latest_build.status).toBe("deleted");
    second.socket[Symbol.dispose]();
  },
);
