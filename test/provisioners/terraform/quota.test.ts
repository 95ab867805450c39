// The daily cost in a template's metadata and a group's limit, which are checked between plan and apply, on the server and on a worker.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WorkspaceQuota } from "#schema/users/group.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { noteFolder } from "#test/support/run/ledger.ts";
import { makeTerraformTemplate, openTerraformWorld, readTemplateFiles } from "#test/support/terraform.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import { awaitBuild, createBuild, createWorkspace } from "#test/support/workspaces.ts";

/** The daily cost of a workspace of the template metadata-cost, while it is running and while it is stopped. */
const [RUNNING_COST, STOPPED_COST] = [23, 3];

for (const location of ["the server", "a worker"]) {
  testNeeding(
    [needs.terraform],
    `[GR-7] [TF-32] a build on ${location} that exceeds the owner's budget fails after its plan and creates nothing`,
    async () => {
      const onWorker = location === "a worker";
      await using world = await openTerraformWorld({ env: { SLIPWAY_TERRAFORM_WORKERS: String(onWorker) } });
      const { admin } = world;
      const directory = mkdtempSync(join(tmpdir(), "tfw-quota-"));
      noteFolder(directory);
      using _ = { [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
      const env = { SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc") };
      const { key } = await makeKey(admin);
      await using worker = onWorker
        ? startWorker({ url: world.server.url, key, name: "away", directory, kinds: "terraform", env })
        : undefined;
      await worker?.connected();
      const { template } = await makeTerraformTemplate(admin, readTemplateFiles("metadata-cost"), "costly");
      const { organization_id } = template;
      const setAllowance = (quota_allowance: number) =>
        admin.patch(`/api/v2/groups/${organization_id}`, { quota_allowance });
      const loadQuota = async (): Promise<number[]> => {
        const path = `/api/v2/organizations/${organization_id}/members/me/workspace-quota`;
        const { credits_consumed, budget } = await admin.get<WorkspaceQuota>(path);
        return [credits_consumed, budget];
      };
      const loadState = async ({ latest_build }: Workspace): Promise<string> =>
        (await admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
      const buildAndWait = async (id: string, transition: string): Promise<Workspace> => {
        await createBuild(admin, id, transition);
        return awaitBuild(admin, id);
      };

      await setAllowance(RUNNING_COST + 2);
      const first = await awaitBuild(admin, (await createWorkspace(admin, template.id, "first")).id);
      expect([first.latest_build.job.error, first.latest_build.daily_cost]).toEqual([undefined, RUNNING_COST]);
      expect(await loadQuota()).toEqual([RUNNING_COST, RUNNING_COST + 2]);

      const second = await awaitBuild(admin, (await createWorkspace(admin, template.id, "second")).id);
      const { job, daily_cost } = second.latest_build;
      expect([job.status, job.error_code, daily_cost]).toEqual(["failed", "INSUFFICIENT_QUOTA", 0]);
      expect(job.error).toContain(`${2 * RUNNING_COST}, and ${RUNNING_COST + 2} are allowed`);
      // Only the plan ran, so there is neither a resource nor a state.
      const lines = await admin.get<{ output: string }[]>(`/api/v2/workspacebuilds/${second.latest_build.id}/logs`);
      const printed = lines.map(({ output }) => output).join("\n");
      expect(printed).toContain("Plan: 7 to add");
      expect(printed).not.toContain("Creating...");
      expect(await loadState(second)).not.toContain("terraform_data");

      // The following steps concern only the server, so they run once.
      if (onWorker) return;
      // A stopped workspace costs its remaining resources, so the budget is still too small for the other workspace.
      expect((await buildAndWait(first.id, "stop")).latest_build.daily_cost).toBe(STOPPED_COST);
      expect((await buildAndWait(second.id, "start")).latest_build.job.error_code).toBe("INSUFFICIENT_QUOTA");
      await setAllowance(RUNNING_COST + STOPPED_COST);
      expect((await buildAndWait(second.id, "start")).latest_build.job.error).toBeUndefined();
      expect(await loadQuota()).toEqual([RUNNING_COST + STOPPED_COST, RUNNING_COST + STOPPED_COST]);
    },
    scaleTimeout(180_000),
  );
}
