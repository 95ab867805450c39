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
    // An agent must not depend on its owner: the provider replaces one whose startup script changes.
    const own = "${data.coder_workspace_owner.me.name}";
    const badge = 'resource "terraform_data" "badge" {\n  triggers_replace = data.coder_workspace_owner.me.email\n}\n';
    const files = { ...readTemplateFiles("minimal", { [own]: "you" }), "preset.tf": preset + badge };
    const { template, version } = await makeTerraformTemplate(admin, files, "kept-ready");
    const listOwned = async (owner: string): Promise<readonly Workspace[]> => {
      const query = encodeURIComponent(`owner:${owner}`);
      return (await admin.get<{ workspaces: Workspace[] }>(`/api/v2/workspaces?q=${query}`)).workspaces;
    };
    const isReady = ({ latest_build }: Workspace): boolean =>
      latest_build.resources.some(({ agents = [] }) => agents.some((one) => one.lifecycle_state === "ready"));
    await until(async () => (await listOwned("prebuilds")).some(isReady));
    const [ready] = (await listOwned("prebuilds")).filter(isReady);
    if (!ready) throw new Error("none is ready");
    expect(ready.latest_build.job.error).toBeUndefined();
    const loadState = async ({ latest_build }: Workspace): Promise<string> =>
      (await admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
    const before = await loadState(ready);
    const [one] = await admin.get<{ id: string }[]>(`/api/v2/templateversions/${version.id}/presets`);
    const body = { name: "mine", template_id: template.id, template_version_preset_id: one?.id };
    const claimed = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
    expect(claimed.id).toBe(ready.id);
    const mine = await awaitBuild(admin, claimed.id);
    expect([mine.latest_build.status, mine.latest_build.job.error]).toEqual(["running", undefined]);
    const logs = await admin.get<{ output: string; log_level: string }[]>(
      `/api/v2/workspacebuilds/${mine.latest_build.id}/logs`,
    );
    expect(logs.filter(({ log_level }) => log_level === "warn").map(({ output }) => output)).toEqual([
      "terraform_data.badge is prebuilt and is re-created for its owner because of triggers_replace.",
    ]);
    const after = await loadState(mine);
    const findMachine = (state: string): unknown => {
      const { resources } = JSON.parse(state) as { resources: { name: string; instances: { attributes: object }[] }[] };
      const findAttributes = (name: string) =>
        resources.find((found) => found.name === name)?.instances[0]?.attributes as never;
      return {
        machine: (findAttributes("machine") as { id: string }).id,
        token: (findAttributes("main") as { token: string }).token,
      };
    };
    expect(findMachine(after)).toEqual(findMachine(before));
    // The running program is the owner's agent now.
    await awaitWorkspace(admin, mine.id, (now) => isReady(now) && now.latest_build.id === mine.latest_build.id);
    await admin.patch(`/api/v2/templates/${template.id}`, { deprecation_message: "no more are kept ready" });
    const others = (await listOwned("prebuilds")).map(({ id }) => id);
    await createBuild(admin, mine.id, "delete");
    await until(async () => (await listOwned("prebuilds")).length + (await listOwned("me")).length === 0);
    // The template keeps its folder in the machine's temp folder.
    for (const id of [mine.id, ...others]) rmSync(`/tmp/slipway-tf-${id}`, { recursive: true, force: true });
  },
  scaleTimeout(240_000),
);
