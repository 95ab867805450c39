// External workers that run Terraform templates, in separate processes with the real program. Only the worker knows the created resources
// during a build. The server learns them when the build has ended.
import { expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TemplateVersion } from "#schema/templates/template-version.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { noteFolder } from "#test/support/run/ledger.ts";
import { followImport, uploadFiles } from "#test/support/templates.ts";
import { findProcesses, makeTerraformTemplate, openTerraformWorld } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];

const HEAD = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
`;
const TAGS = `
data "coder_workspace_tags" "where" {
  tags = { "region" = "eu" }
}
`;

const makePart = (folder: string, name: string, settings = "", commands = ""): string => `
resource "terraform_data" "${name}" {
  input = "${folder}"
  ${settings}
  provisioner "local-exec" { command = "echo made >> ${folder}/${name}${commands}" }
  provisioner "local-exec" {
    when    = destroy
    command = "rm -f \${self.input}/${name}"
  }
}
`;

/** Returns the paths below a folder. A folder that is being removed still counts as one with a state. */
const listNamesBelow = (folder: string): string[] => {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch {
    return ["terraform.tfstate"];
  }
};

/** Opens a world that starts Terraform workers, and removes their folders at its end. */
const openWorkerWorld = async (env: Record<string, string> = {}) => {
  const world = await openTerraformWorld({ env });
  const { key } = await makeKey(world.admin);
  const parts = mkdtempSync(join(tmpdir(), "slipway-tf-parts-"));
  noteFolder(parts);
  const folders: string[] = [];
  const makeWorkerFolder = (name: string): string => {
    const folder = mkdtempSync(join(tmpdir(), `tfw-${name}-`));
    noteFolder(folder);
    folders.push(folder);
    return folder;
  };
  const start = (name: string, options: Partial<Parameters<typeof startWorker>[0]> = {}) =>
    startWorker({
      url: world.server.url,
      key,
      name,
      directory: makeWorkerFolder(name),
      kinds: "terraform",
      tags: { region: "eu" },
      env: { SLIPWAY_WORKER_TERRAFORM_CLI_CONFIG: join(needs.terraform.file, "rc") },
      ...options,
    });
  return {
    ...world,
    parts,
    start,
    makeWorkerFolder,
    has: (name: string) => existsSync(join(parts, name)),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      for (const folder of [parts, ...folders]) rmSync(folder, { recursive: true, force: true });
    },
  };
};

const createTemplate = async (client: Client, main: string): Promise<string> =>
  (await makeTerraformTemplate(client, { "main.tf": main }, "parts")).template.id;
const loadState = async (client: Client, { latest_build }: Workspace): Promise<string> =>
  (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
const readOutputs = async (client: Client, build_id: string): Promise<string> => {
  const logs = await client.get<{ output: string }[]>(`/api/v2/workspacebuilds/${build_id}/logs`);
  return logs.map(({ output }) => output).join("\n");
};
const buildAndWait = async (client: Client, id: string, transition: "stop" | "delete"): Promise<Workspace> => {
  const build = await createBuild(client, id, transition);
  await until(async () => {
    const { job } = await client.get<{ job: { status: string } }>(`/api/v2/workspacebuilds/${build.id}`);
    return !["pending", "running", "canceling"].includes(job.status);
  });
  return client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
};

testNeeding(
  requirements,
  "[TF-18] [TF-19] a template with tags waits for a worker with them, which returns agents, output and state to the server",
  async () => {
    await using world = await openWorkerWorld();
    const { admin, parts } = world;
    const agent = `resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
${makePart(parts, "box", "depends_on = [coder_agent.main, terraform_data.token]", `; echo it is $(cat ${parts}/token)`)}
resource "terraform_data" "token" {
  input = data.coder_workspace_owner.me.session_token
  provisioner "local-exec" { command = "printf %s \\"\${self.input}\\" > ${parts}/token" }
}
resource "coder_metadata" "box" {
  resource_id = terraform_data.box.id
  item {
    key   = "place"
    value = "worker"
  }
}
`;
    const template_id = await createTemplate(admin, HEAD + TAGS + agent);
    const { id } = await createWorkspace(admin, template_id);
    const pending = await until(async () => {
      const { latest_build } = await admin.get<Workspace>(`/api/v2/workspaces/${id}`);
      return (await readOutputs(admin, latest_build.id)).includes("No worker with the tags") && latest_build;
    });
    expect([pending.job.status, world.has("box")]).toEqual(["pending", false]);
    await using other = world.start("other", { tags: { region: "us" } });
    await other.connected();
    expect((await admin.get<Workspace>(`/api/v2/workspaces/${id}`)).latest_build.job.status).toBe("pending");

    await using worker = world.start("near");
    const workspace = await awaitBuild(admin, id);
    const { latest_build } = workspace;
    expect([latest_build.job.status, latest_build.job.worker_name, world.has("box")]).toEqual([
      "succeeded",
      "near",
      true,
    ]);
    const agents = latest_build.resources.flatMap((resource) => resource.agents ?? []);
    expect(agents.map(({ name }) => name)).toEqual(["main"]);
    // The owner's token has reached the worker, but no log.
    const token = readFileSync(join(parts, "token"), "utf8");
    expect(token).toMatch(/^\w{10}-\w{22}$/);
    const printed = await readOutputs(admin, latest_build.id);
    expect(printed).toContain("it is");
    expect(printed).not.toContain(token);
    expect(worker.errors()).not.toContain(token);
    // Only the server has the workspace's state.
    const state = await loadState(admin, workspace);
    expect(state).toContain('"box"');
    const listLeftovers = (name: string): string[] =>
      listNamesBelow(world.folder).filter((path) => path.endsWith(name));
    await until(() => listLeftovers("terraform.tfstate").length === 0);
    await worker[Symbol.asyncDispose]();

    // Once a build has ended, any worker can continue with it, and the delete removes what the other has created.
    await using next = world.start("next");
    const deleted = await buildAndWait(admin, id, "delete");
    expect([deleted.latest_build.job.status, deleted.latest_build.job.worker_name]).toEqual(["succeeded", "next"]);
    expect(world.has("box")).toBe(false);
    await next.connected();
  },
);

testNeeding(
  requirements,
  "[TF-19] an apply that fails or is canceled on a worker keeps its resources and leaves no process",
  async () => {
    await using world = await openWorkerWorld({ SLIPWAY_TERRAFORM_WORKERS: "true" });
    const { admin, parts } = world;
    const waitCommand = `; until [ -e ${parts}/open ]; do sleep 0.05; done; [ ! -e ${parts}/fail ]`;
    const main =
      HEAD + makePart(parts, "first") + makePart(parts, "second", "depends_on = [terraform_data.first]", waitCommand);
    const directory = world.makeWorkerFolder("one");
    await using worker = world.start("one", { directory, tags: {} });
    await worker.connected();
    const template_id = await createTemplate(admin, main);
    for (const outcome of ["fails", "is cancelled"]) {
      const { id, latest_build } = await createWorkspace(admin, template_id, outcome.replaceAll(" ", "-"));
      await until(() => world.has("second"));
      if (outcome === "fails") for (const name of ["fail", "open"]) writeFileSync(join(parts, name), "");
      else await admin.patch(`/api/v2/workspacebuilds/${latest_build.id}/cancel`);
      const workspace = await awaitWorkspace(admin, id, (found) =>
        ["failed", "canceled"].includes(found.latest_build.job.status),
      );
      expect([outcome, workspace.latest_build.job.status]).toEqual([
        outcome,
        outcome === "fails" ? "failed" : "canceled",
      ]);
      const state = await loadState(admin, workspace);
      expect(state).toContain('"first"');
      await until(() => findProcesses(join(directory, "terraform", "builds")).length === 0);
      for (const name of ["fail", "open"]) rmSync(join(parts, name), { force: true });
      writeFileSync(join(parts, "open"), "");
      const deleted = await buildAndWait(admin, id, "delete");
      expect([outcome, deleted.latest_build.job.status, world.has("first")]).toEqual([outcome, "succeeded", false]);
      // The interrupted resource is tainted, so Terraform runs no destroy command for it.
      rmSync(join(parts, "second"), { force: true });
      rmSync(join(parts, "open"));
    }
    // The worker keeps no state that the server has stored.
    await until(() =>
      listNamesBelow(directory).every((path) => !path.endsWith(".tfstate") && !path.startsWith("files/")),
    );
  },
);

testNeeding(requirements, "[TF-20] only the worker that was killed during an apply resumes the build", async () => {
  await using world = await openWorkerWorld({ SLIPWAY_TERRAFORM_WORKERS: "true" });
  const { admin, parts } = world;
  const waitCommand = `; until [ -e ${parts}/open ]; do sleep 0.05; done`;
  const main =
    HEAD + makePart(parts, "first") + makePart(parts, "second", "depends_on = [terraform_data.first]", waitCommand);
  const directory = world.makeWorkerFolder("killed");
  const workerOptions = { directory, tags: {} };
  const first = world.start("killed", workerOptions);
  await first.connected();
  const template_id = await createTemplate(admin, main);
  const { id } = await createWorkspace(admin, template_id);
  await until(() => world.has("second"));
  first.signal("SIGKILL");
  await first.exited;
  await using other = world.start("other", { tags: {} });
  await other.connected();
  const pending = await awaitWorkspace(admin, id, (found) => found.latest_build.job.status === "pending");
  await until(async () => (await readOutputs(admin, pending.latest_build.id)).includes("where the workspace lives"));
  writeFileSync(join(parts, "open"), "");
  await using restarted = world.start("killed", workerOptions);
  const workspace = await awaitBuild(admin, id);
  expect([workspace.latest_build.job.status, workspace.latest_build.job.worker_name]).toEqual(["succeeded", "killed"]);
  // The resumed build knew the resources of the first run, so it created them only once.
  expect(readFileSync(join(parts, "first"), "utf8")).toBe("made\n");
  const deleted = await buildAndWait(admin, id, "delete");
  expect([deleted.latest_build.job.status, world.has("first"), world.has("second")]).toEqual([
    "succeeded",
    false,
    false,
  ]);
  await restarted.connected();
});

testNeeding(
  requirements,
  "[TF-22] imports and dry runs of a template with tags run only on workers, and another worker takes over a lost one's import",
  async () => {
    await using world = await openWorkerWorld({ SLIPWAY_TERRAFORM_BINARY: "/nowhere/terraform" });
    const { admin, parts } = world;
    const template = `data "coder_parameter" "size" {
  name    = "size"
  default = "2"
  option {
    name  = "two"
    value = "2"
  }
  option {
    name  = "three"
    value = "3"
  }
}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
resource "coder_app" "web" {
  agent_id = coder_agent.main.id
  slug     = "web"
  url      = "http://localhost:1"
}
module "box" {
  source = "./box"
  count  = data.coder_parameter.size.value
}
`;
    const box = `resource "terraform_data" "box__a" {
  input = "x"
}
`;
    const slow = HEAD + template + makePart(parts, "first", "depends_on = [coder_agent.main]");
    const files = { "main.tf": slow, "box/main.tf": box };
    const requests = { file_id: await uploadFiles(admin, files), tags: { region: "eu" } };
    const pushed = await admin.post<TemplateVersion>("/api/v2/organizations/default/templateversions", requests);
    // At first, no worker has the tags. Then the first worker is killed while it plans.
    const directory = world.makeWorkerFolder("first");
    const first = world.start("first", { directory });
    await first.connected();
    await until(() => readdirSync(directory).includes("files") && readdirSync(join(directory, "files")).length > 0);
    first.signal("SIGKILL");
    await first.exited;
    await using _second = world.start("second");
    const { lines } = await followImport(admin, pushed.id);
    const version = await admin.get<TemplateVersion>(`/api/v2/templateversions/${pushed.id}`);
    expect([version.job.error, version.job.worker_name]).toEqual([undefined, "second"]);
    const printed = lines.map(({ output }) => output).join("\n");
    expect(printed).toContain("No worker with the tags");
    expect(printed).toContain("The worker first was lost");

    const dryRunPath = `/api/v2/templateversions/${version.id}/dry-run`;
    const rich_parameter_values = [{ name: "size", value: "3" }];
    const dryRun = await admin.post<{ id: string }>(dryRunPath, { rich_parameter_values });
    using socket = await admin.socket(`${dryRunPath}/${dryRun.id}/logs?follow`);
    for await (const _ of socket);
    const job = await admin.get<{ status: string; worker_name: string; error?: string }>(`${dryRunPath}/${dryRun.id}`);
    expect([job.error, job.status, job.worker_name]).toEqual([undefined, "succeeded", "second"]);
    // The resources are those for these values, not for the defaults.
    const planned = await admin.get<{ type: string; name: string }[]>(`${dryRunPath}/${dryRun.id}/resources`);
    expect(planned.map(({ name }) => name).sort()).toEqual(["box__a", "box__a", "box__a", "first"]);
    expect(JSON.stringify(job)).not.toContain("box__a");

    // A build needs the import's tags, and apps keep their IDs.
    const body = { name: "away", template_version_id: version.id };
    const { id: template_id } = await admin.post<{ id: string }>("/api/v2/organizations/default/templates", body);
    const { id } = await createWorkspace(admin, template_id, "away");
    const built = await awaitBuild(admin, id);
    expect([built.latest_build.job.error, built.latest_build.job.worker_name]).toEqual([undefined, "second"]);
    const apps = built.latest_build.resources.flatMap(({ agents = [] }) => agents.flatMap((agent) => agent.apps));
    expect(apps.map(({ slug }) => slug)).toEqual(["web"]);
    expect(await loadState(admin, built)).toContain(apps[0]?.id ?? "no app");
    expect((await buildAndWait(admin, id, "delete")).latest_build.job.status).toBe("succeeded");
  },
);
