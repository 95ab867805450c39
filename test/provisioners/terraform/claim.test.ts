// Claiming a workspace prebuilt from a Terraform template: the running agent keeps its token, so nothing is replaced.
import { expect } from "bun:test";
import { rmSync } from "node:fs";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { makeTerraformTemplate, openTerraformWorld, readTemplateFiles } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild } from "#test/support/workspaces.ts";

testNeeding(
  [needs.terraform],
  "[TF-16] [TF-25] a claimed workspace keeps its machine and token, and belongs to its owner",
  async () => {
    await using world = await openTerraformWorld();
    const { admin } = world;
    const preset = 'data "coder_workspace_preset" "one" {\n  name = "One"\n  prebuilds { instances = 1 }\n}\n';
    // An agent must not depend on its owner, because the provider replaces an agent whose startup script changes.
    const ownerName = "${data.coder_workspace_owner.me.name}";
    const badge = 'resource "terraform_data" "badge" {\n  triggers_replace = data.coder_workspace_owner.me.email\n}\n';
    const files = { ...readTemplateFiles("minimal", { [ownerName]: "you" }), "preset.tf": preset + badge };
    const { template, version } = await makeTerraformTemplate(admin, files, "kept-ready");
    const listOwned = async (owner: string): Promise<readonly Workspace[]> => {
      const query = encodeURIComponent(`owner:${owner}`);
      return (await admin.get<{ workspaces: Workspace[] }>(`/api/v2/workspaces?q=${query}`)).workspaces;
    };
    const isReady = ({ latest_build }: Workspace): boolean =>
      latest_build.resources.some(({ agents = [] }) => agents.some((agent) => agent.lifecycle_state === "ready"));
    await until(async () => (await listOwned("prebuilds")).some(isReady));
    const [prebuilt] = (await listOwned("prebuilds")).filter(isReady);
    if (!prebuilt) throw new Error("no prebuilt workspace is ready");
    expect(prebuilt.latest_build.job.error).toBeUndefined();
    const loadState = async ({ latest_build }: Workspace): Promise<string> =>
      (await admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
    const before = await loadState(prebuilt);
    const [presetRow] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${version.id}/presets`);
    const body = { name: "mine", template_id: template.id, template_version_preset_id: presetRow?.id };
    const claimed = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
    expect(claimed.id).toBe(prebuilt.id);
    const claimedWorkspace = await awaitBuild(admin, claimed.id);
    expect([claimedWorkspace.latest_build.status, claimedWorkspace.latest_build.job.error]).toEqual([
      "running",
      undefined,
    ]);
    const logs = await admin.get<{ output: string; log_level: string }[]>(
      `/api/v2/workspacebuilds/${claimedWorkspace.latest_build.id}/logs`,
    );
    expect(logs.filter(({ log_level }) => log_level === "warn").map(({ output }) => output)).toEqual([
      "terraform_data.badge is prebuilt and is re-created for its owner because of triggers_replace.",
    ]);
    const after = await loadState(claimedWorkspace);
    const findMachine = (state: string): unknown => {
      const { resources } = JSON.parse(state) as { resources: { name: string; instances: { attributes: object }[] }[] };
      const findAttributes = (name: string) =>
        resources.find((resource) => resource.name === name)?.instances[0]?.attributes as never;
      return {
        machine: (findAttributes("machine") as { id: string }).id,
        token: (findAttributes("main") as { token: string }).token,
      };
    };
    expect(findMachine(after)).toEqual(findMachine(before));
    // The running program is now the owner's agent.
    await awaitWorkspace(
      admin,
      claimedWorkspace.id,
      (found) => isReady(found) && found.latest_build.id === claimedWorkspace.latest_build.id,
    );
    await admin.patch(`/api/v2/templates/${template.id}`, { deprecation_message: "no more are kept ready" });
    const otherIds = (await listOwned("prebuilds")).map(({ id }) => id);
    await createBuild(admin, claimedWorkspace.id, "delete");
    await until(async () => (await listOwned("prebuilds")).length + (await listOwned("me")).length === 0);
    // The template creates a folder in the machine's temporary folder.
    for (const id of [claimedWorkspace.id, ...otherIds])
      rmSync(`/tmp/slipway-tf-${id}`, { recursive: true, force: true });
  },
  scaleTimeout(240_000),
);
