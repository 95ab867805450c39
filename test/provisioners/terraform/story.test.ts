// The life of a workspace of each template, with the real program and provider: it is created, connected, stopped, started with other values
// and deleted. Also checks for leftovers.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { followImport, importVersion } from "#test/support/templates.ts";
import {
  findProcesses,
  makeTerraformTemplate,
  openTerraformWorld,
  readTemplateFiles,
  type TerraformWorld,
} from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { TEMPLATES } from "./comparison.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

type Log = { output: string; stage: string; log_level: string };
const loadLogs = ({ latest_build }: Workspace): Promise<Log[]> =>
  world.admin.get<Log[]>(`/api/v2/workspacebuilds/${latest_build.id}/logs`);
const listAgents = ({ latest_build }: Workspace) => latest_build.resources.flatMap(({ agents = [] }) => agents);
const isReady = (workspace: Workspace): boolean =>
  listAgents(workspace).some((agent) => agent.status === "connected" && agent.lifecycle_state === "ready");
const loadState = async ({ latest_build }: Workspace): Promise<string> =>
  (await world.admin.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
const findSecrets = (state: string): string[] => state.match(/"(?:session_)?token": "([^"]+)"/g) ?? [];

/** Starts a build. Returns the workspace once the build has ended. */
const buildAndWait = async (id: string, transition: string, options: object = {}): Promise<Workspace> => {
  await createBuild(world.admin, id, transition, options);
  if (transition !== "delete") return awaitBuild(world.admin, id);
  for (;;) {
    const workspace = await world.admin.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
    if (["deleted", "failed"].includes(workspace.latest_build.status)) return workspace;
    await followBuild(workspace);
  }
};

const followBuild = async ({ latest_build }: Workspace): Promise<void> => {
  using socket = await world.admin.socket(`/api/v2/workspacebuilds/${latest_build.id}/logs?follow`);
  for await (const _ of socket);
};

testNeeding(
  requirements,
  "[TF-6] an import plans start and stop, reports the resources of both, and leaves nothing behind",
  async () => {
    const version = await importVersion(world.admin, readTemplateFiles("metadata-cost"));
    expect(version.job.error).toBeUndefined();
    type PlannedResource = { type: string; name: string; workspace_transition: string; daily_cost: number };
    const resources = await world.admin.get<PlannedResource[]>(`/api/v2/templateversions/${version.id}/resources`);
    const summaries = resources.map(
      ({ workspace_transition, type, name, daily_cost }) => `${workspace_transition} ${type}.${name} ${daily_cost}`,
    );
    expect(summaries.sort()).toEqual([
      "start terraform_data.home_volume 3",
      "start terraform_data.machine 20",
      "start terraform_data.network 0",
      "stop terraform_data.home_volume 3",
      "stop terraform_data.network 0",
    ]);
    const { lines } = await followImport(world.admin, version.id);
    expect(lines.some(({ output }) => output.startsWith("Plan: 5 to add"))).toBe(true);
    expect(readdirSync(join(world.server.directory, "terraform", "imports"))).toEqual([]);
  },
);

testNeeding(requirements, "[TF-6] reports template errors with file and line, and as the job's error", async () => {
  const files = { "main.tf": 'resource "terraform_data" "x" {\n  input = local.nothing\n}\n' };
  const version = await importVersion(world.admin, files);
  expect(version.job.status).toBe("failed");
  expect(version.job.error).toContain("Reference to undeclared local value");
  const { lines } = await followImport(world.admin, version.id);
  expect(lines.map(({ output }) => output).join("\n")).toContain("on main.tf line 2");
});

testNeeding(
  requirements,
  "[TF-6] variables without a value fail the import and are listed; a file of the template can set them",
  async () => {
    const declared = 'variable "region" {}\nvariable "zones" { type = list(string) }\n';
    const files = { ...readTemplateFiles("minimal"), "variables.tf": declared };
    const missing = await importVersion(world.admin, files);
    expect(missing.job.error_code).toBe("REQUIRED_TEMPLATE_VARIABLES");
    type Variable = { name: string; type: string; required: boolean };
    const variables = await world.admin.get<Variable[]>(`/api/v2/templateversions/${missing.id}/variables`);
    expect(variables.map(({ name, type, required }) => [name, type, required])).toEqual([
      ["region", "string", true],
      ["zones", "list(string)", true],
    ]);
    const filesWithValues = { ...files, "terraform.tfvars": 'region = "eu"\n' };
    const user_variable_values = [{ name: "zones", value: '["a", "b"]' }];
    const good = await importVersion(world.admin, filesWithValues, { user_variable_values });
    expect(good.job.error).toBeUndefined();
  },
);

/** Checks that apps keep their IDs, which are in the state, after another start. */
const expectSameApps = async (started: Workspace, restarted: Workspace): Promise<void> => {
  const listApps = (workspace: Workspace) =>
    listAgents(workspace).flatMap(({ apps }) => apps.map(({ id, slug }) => `${slug} ${id}`));
  expect(listApps(restarted).map((app) => app.split(" ")[0])).toEqual(["docs", "each-one", "each-two", "htop", "web"]);
  expect(listApps(restarted)).toEqual(listApps(started));
};

testNeeding(
  requirements,
  "[TF-7] a workspace is created, its agent connects and runs its script, and stop, start and delete leave nothing running",
  async () => {
    const { admin } = world;
    const { template } = await makeTerraformTemplate(admin, readTemplateFiles("minimal"), "minimal");
    const { id } = await createWorkspace(admin, template.id, "life");
    const home = `/tmp/slipway-tf-${id}`;
    const first = await awaitWorkspace(admin, id, isReady);
    expect(await Bun.file(`${home}/started`).text()).toBe("hello admin\n");
    expect(findProcesses(home).length).toBeGreaterThan(0);
    const stopped = await buildAndWait(id, "stop");
    expect(stopped.latest_build.status).toBe("stopped");
    expect(listAgents(stopped)).toEqual([]);
    expect(findProcesses(home)).toEqual([]);
    await buildAndWait(id, "start");
    const restarted = await awaitWorkspace(admin, id, isReady);
    expect(listAgents(restarted)[0]?.id).not.toBe(listAgents(first)[0]?.id);
    // A start of a running workspace replaces the machine, because its token is new.
    await buildAndWait(id, "start");
    const third = await awaitWorkspace(admin, id, isReady);
    const texts = (await loadLogs(third)).map(({ output }) => output).join("\n");
    const secrets = findSecrets(await loadState(third));
    expect(secrets.length).toBeGreaterThan(0);
    for (const secret of secrets) expect(texts).not.toContain(secret.slice(secret.lastIndexOf(" ") + 2, -1));
    const deleted = await buildAndWait(id, "delete");
    expect(deleted.latest_build.status).toBe("deleted");
    expect(findProcesses(home)).toEqual([]);
    // The template creates a folder in the machine's temporary folder.
    rmSync(home, { recursive: true, force: true });
    await until(() => !existsSync(join(world.server.directory, "terraform", "builds", id)));
  },
  scaleTimeout(180_000),
);

/** Starts a Terraform worker with these tags. */
const startTerraformWorker = async ({ server, admin, folder }: TerraformWorld, tags: Record<string, string>) => {
  const { key } = await makeKey(admin);
  const env = { SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc") };
  const options = { directory: join(folder, "worker"), kinds: "terraform", tags, env };
  const worker = startWorker({ url: server.url, key, name: "away", ...options });
  await worker.connected();
  return worker;
};

for (const name of TEMPLATES) {
  if (name === "minimal") continue;
  testNeeding(
    requirements,
    `[TF-7] a workspace of the template ${name} can be started, stopped, started and deleted`,
    async () => {
      const { admin } = world;
      const { template } = await makeTerraformTemplate(admin, readTemplateFiles(name), name);
      // This template requests tags, so an external worker runs it.
      await using _ =
        name === "parameters" ? await startTerraformWorker(world, { region: "eu", kind: "vm" }) : undefined;
      const rich_parameter_values = name === "parameters" ? [{ name: "required_one", value: "x" }] : [];
      const { id } = await createWorkspace(admin, template.id, name, { rich_parameter_values });
      const started = await awaitBuild(admin, id);
      expect(started.latest_build.job.error).toBeUndefined();
      expect(listAgents(started).map((agent) => agent.name)).toEqual(["main"]);
      const stopped = await buildAndWait(id, "stop");
      expect(stopped.latest_build.status).toBe("stopped");
      const remaining = stopped.latest_build.resources.map((resource) => `${resource.type}.${resource.name}`).sort();
      const expectedRemaining: Record<string, string[]> = {
        "apps-and-scripts": ["devcontainer.app", "env.editor", "env.tools_a", "env.tools_b"].map(
          (resource) => `coder_${resource}`,
        ),
        "metadata-cost": ["terraform_data.home_volume", "terraform_data.network"],
        "presets-prebuilds": ["terraform_data.kind"],
      };
      expect(remaining).toEqual(expectedRemaining[name] ?? []);
      const changed = name === "parameters" ? [{ name: "cpus", value: "5" }] : [];
      const restarted = await buildAndWait(id, "start", { rich_parameter_values: changed });
      expect(restarted.latest_build.status).toBe("running");
      if (name === "parameters") expect(/"value": \[\s*"5",/.test(await loadState(restarted))).toBe(true);
      if (name === "apps-and-scripts") await expectSameApps(started, restarted);
      if (name === "metadata-cost") expect(restarted.latest_build.daily_cost).toBe(23);
      expect((await buildAndWait(id, "delete")).latest_build.status).toBe("deleted");
    },
    scaleTimeout(180_000),
  );
}
