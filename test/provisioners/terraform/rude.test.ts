// Hostile, hasty or dying clients and templates over the public API: invalid archives, duplicate and concurrent requests, commands that print
// endlessly. In each case, the job ends with a reason, leaves nothing behind, and the next build succeeds.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createTar, followImport, sendFile } from "#test/support/templates.ts";
import {
  findProcesses,
  makeTerraformTemplate,
  openTerraformWorld,
  type TerraformWorld,
} from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const HEAD = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
`;
const makeTemplateText = (command: string): string => `${HEAD}
resource "terraform_data" "first" {
  input = "first"
}
resource "terraform_data" "second" {
  depends_on       = [terraform_data.first]
  triggers_replace = [timestamp()]
  provisioner "local-exec" { command = "${command}" }
}
`;

const listFolders = (kind: "builds" | "imports"): string[] => {
  const folder = join(world.server.directory, "terraform", kind);
  return existsSync(folder) ? readdirSync(folder) : [];
};
const waitUntilEmpty = (): Promise<unknown> =>
  until(() => [...listFolders("builds"), ...listFolders("imports")].length === 0, { what: "the folders go" });

const loadState = async ({ latest_build }: Workspace): Promise<string> =>
  (await world.admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();

testNeeding(
  requirements,
  "[TF-43] an invalid archive is refused or fails its import with a reason, and leaves nothing behind",
  async () => {
    const { admin } = world;
    const archive = await createTar({ "main.tf": makeTemplateText("true"), "more.txt": "x".repeat(100_000) });
    const damaged = archive.slice();
    damaged.fill(0x41, 100, 140);
    const bodies: Record<string, Uint8Array<ArrayBuffer>> = {
      "cut off": archive.slice(0, 60_000),
      damaged,
      "of nothing": new Uint8Array(0),
      "of zeros": new Uint8Array(10_240),
      "a gzip that is called a tar": Bun.gzipSync(archive),
      "of a name outside": await createTar({
        "main.tf": makeTemplateText("true"),
        "../outside.tf": makeTemplateText("true"),
      }),
      "no HCL": await createTar({ "main.tf": "resource {{{ \0 \u{1f4a3}" }),
      "HCL without end": await createTar({ "main.tf": "[".repeat(200_000) }),
    };
    const results: Record<string, string> = {};
    for (const [name, body] of Object.entries(bodies)) {
      const upload = await sendFile(admin, body);
      if (!upload.ok) {
        results[name] = `${upload.status}`;
        continue;
      }
      const { hash } = (await upload.json()) as { hash: string };
      const path = "/api/v2/organizations/default/templateversions";
      const version = await admin.post<TemplateVersion>(path, { storage_method: "file", file_id: hash });
      await followImport(admin, version.id);
      const { job } = await admin.get<TemplateVersion>(`/api/v2/templateversions/${version.id}`);
      results[name] = `${job.status}: ${job.error}`;
    }
    for (const [name, result] of Object.entries(results))
      expect(`${name}: ${result}`).toMatch(/: (4\d\d|failed: .{10,})$/s);
    await waitUntilEmpty();
    expect((await admin.fetch("GET", "/readyz")).status).toBe(200);
  },
);

testNeeding(
  requirements,
  "[TF-43] a command that prints too much fails its build, keeps created resources and does not block the server",
  async () => {
    const { admin } = world;
    const { template } = await makeTerraformTemplate(
      admin,
      { "main.tf": makeTemplateText("yes 0123456789012345678901234567890123456789 | head -c 25000000") },
      "loud",
    );
    const { id } = await createWorkspace(admin, template.id, "loud");
    let longestResponseMs = 0;
    let isDone = false;
    const requesting = (async () => {
      while (!isDone) {
        const startedAt = performance.now();
        await admin.get("/api/v2/users/me");
        longestResponseMs = Math.max(longestResponseMs, performance.now() - startedAt);
      }
    })();
    const ended = await awaitBuild(admin, id);
    isDone = true;
    await requesting;
    expect(ended.latest_build.job.status).toBe("failed");
    expect(ended.latest_build.job.error).toContain("printed");
    // The limit allows for other load on this machine.
    expect(longestResponseMs).toBeLessThan(5_000);
    expect(await loadState(ended)).toContain('"first"');
    await createBuild(admin, id, "delete");
    const deleted = await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
    expect(deleted.latest_build.job.error).toBeUndefined();
    await waitUntilEmpty();
  },
);

testNeeding(
  requirements,
  "[TF-43] concurrent builds, deletes and pushed states are refused during a build; a final delete leaves nothing behind",
  async () => {
    const { admin, folder } = world;
    const { template } = await makeTerraformTemplate(
      admin,
      { "main.tf": makeTemplateText(`touch ${folder}/begun; sleep 600; echo over`) },
      "hasty",
    );
    const { id } = await createWorkspace(admin, template.id, "hasty");
    await until(() => existsSync(join(folder, "begun")), { what: "the apply" });
    const path = `/api/v2/workspaces/${id}/builds`;
    const requests = ["start", "stop", "delete"].flatMap((transition) =>
      Array.from({ length: 7 }, () => ({ transition })),
    );
    const refused = await Promise.all(requests.map((body) => admin.fetch("POST", path, body)));
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([409]));
    const orphan = await admin.fetch("POST", path, { transition: "delete", orphan: true });
    expect(orphan.status).toBe(409);
    const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
    const buildPath = `/api/v2/workspacebuilds/${latest_build.id}`;
    const pushed = await admin.fetch("PUT", `${buildPath}/state`, { version: 4, serial: 99, lineage: "x" });
    expect(pushed.ok).toBe(false);
    const cancels = await Promise.all(
      Array.from({ length: 10 }, () => admin.fetch("PATCH", `${buildPath}/cancel`, {})),
    );
    expect(cancels.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 9 }, () => 400)]);
    const canceled = await awaitBuild(admin, id);
    expect(canceled.latest_build.status).toBe("canceled");
    expect(findProcesses(`${folder}/begun`)).toEqual([]);
    expect(await loadState(canceled)).toContain('"first"');
    expect((await admin.fetch("PATCH", `${buildPath}/cancel`, {})).status).toBe(400);
    // Concurrent delete requests lead to one delete.
    const deletes = await Promise.all(
      Array.from({ length: 5 }, () => admin.fetch("POST", path, { transition: "delete" })),
    );
    expect(deletes.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
    await awaitWorkspace(admin, id, (workspace) => workspace.latest_build.status === "deleted");
    await waitUntilEmpty();
  },
);

testNeeding(
  requirements,
  "[TF-43] a build that is canceled at any moment ends as canceled or succeeded, and a delete leaves nothing behind",
  async () => {
    const { admin } = world;
    const { template } = await makeTerraformTemplate(admin, { "main.tf": makeTemplateText("true") }, "fickle");
    const ids = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => {
        const { id, latest_build } = await createWorkspace(admin, template.id, `fickle-${index}`);
        const buildPath = `/api/v2/workspacebuilds/${latest_build.id}`;
        // Together, these moments cover a complete build, from the queue to its last line.
        await until(async () => (await admin.get<unknown[]>(`${buildPath}/logs`)).length >= index * 3, {
          what: "its log",
        });
        await admin.fetch("PATCH", `${buildPath}/cancel`, {});
        const { latest_build: ended } = await awaitBuild(admin, id);
        expect(["succeeded", "canceled"]).toContain(ended.job.status);
        await createBuild(admin, id, "delete");
        return id;
      }),
    );
    for (const id of ids) {
      const deleted = await awaitWorkspace(
        admin,
        id,
        ({ latest_build }) => latest_build.job.completed_at !== undefined,
      );
      expect([deleted.latest_build.status, deleted.latest_build.job.error]).toEqual(["deleted", undefined]);
      const builds = await admin.get<Build[]>(`/api/v2/workspaces/${id}/builds`);
      expect(builds.length).toBe(2);
    }
    await waitUntilEmpty();
  },
);
