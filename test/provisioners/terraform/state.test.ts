// Resources created by a run are never lost: after an apply that fails, is canceled, or loses its server, the next build continues from
// what actually exists. Also checks for leaks from a run: secrets in logs, the server's own variables.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBuild } from "#db/workspaces/builds.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { loadManifest } from "#src/api/agents/rpc/manifest.ts";
import type { Client } from "#src/client.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { noteFolder } from "#test/support/run/ledger.ts";
import { getContext } from "#test/support/seed.ts";
import { ADMIN } from "#test/support/server.ts";
import { importVersion } from "#test/support/templates.ts";
import {
  findProcesses,
  makeTerraformTemplate,
  openTerraformWorld,
  type TerraformWorld,
  toTerraformOptions,
} from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const wanted = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Creates a folder with one file for each existing resource of a workspace. */
const makeTempFolder = () => {
  const path = mkdtempSync(join(tmpdir(), "slipway-tf-parts-"));
  noteFolder(path);
  const has = (name: string): boolean => existsSync(join(path, name));
  return {
    path,
    has,
    put: (name: string): void => writeFileSync(join(path, name), ""),
    drop: (name: string): void => rmSync(join(path, name), { force: true }),
    /** Resolves once the file exists. */
    async appears(name: string): Promise<void> {
      const watcher = watch(path);
      const seen = new Promise<void>((resolve) => watcher.on("change", () => has(name) && resolve()));
      if (!has(name)) await seen;
      watcher.close();
    },
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
};

const HEAD = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
`;

const makePart = (place: string, name: string, command: string, more = ""): string => `
resource "terraform_data" "${name}" {
  input = "${place}"
  ${more}
  provisioner "local-exec" { command = "echo made >> ${place}/${name}${command}" }
  provisioner "local-exec" {
    when    = destroy
    command = "rm -f \${self.input}/${name}"
  }
}
`;

/** The first part is created immediately; the second waits for the file `open`, and fails if the file `fail` exists. */
const makeParts = (place: string): string => {
  const waits = `; until [ -e ${place}/open ]; do sleep 0.05; done; [ ! -e ${place}/fail ]`;
  return HEAD + makePart(place, "first", "") + makePart(place, "second", waits, "depends_on = [terraform_data.first]");
};

let created = 0;
const createTemplate = async (client: Client, main: string): Promise<string> => {
  created += 1;
  return (await makeTerraformTemplate(client, { "main.tf": main }, `parts-${created}`)).template.id;
};

const loadState = async (client: Client, { latest_build }: Workspace): Promise<string> =>
  (await client.fetch("GET", `/api/v2/workspacebuilds/${latest_build.id}/state`)).text();
const listNames = (state: string): string[] =>
  (JSON.parse(state) as { resources: { mode: string; name: string }[] }).resources
    .filter(({ mode }) => mode === "managed")
    .map(({ name }) => name);

const readOutputs = async (client: Client, { latest_build }: Workspace): Promise<string> => {
  const logs = await client.get<{ output: string }[]>(`/api/v2/workspacebuilds/${latest_build.id}/logs`);
  return logs.map(({ output }) => output).join("\n");
};

/** Returns the delete build once it has ended. */
const deleteAndWait = async (client: Client, id: string, more: object = {}): Promise<Workspace> => {
  const build = await createBuild(client, id, "delete", more);
  using socket = await client.socket(`/api/v2/workspacebuilds/${build.id}/logs?follow`);
  for await (const _ of socket);
  return client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);
};

testNeeding(wanted, "[TF-8] a failed apply keeps its resources, encrypted, and the delete removes them", async () => {
  using place = makeTempFolder();
  place.put("open");
  place.put("fail");
  const { admin } = world;
  const { id } = await createWorkspace(admin, await createTemplate(admin, makeParts(place.path)), "fails");
  const failed = await awaitBuild(admin, id);
  expect(failed.latest_build.status).toBe("failed");
  expect(failed.latest_build.job.error).toContain("local-exec provisioner error");
  expect(listNames(await loadState(admin, failed))).toEqual(["first", "second"]);
  const { store } = getContext(world.server);
  const row = await store.get(findBuild({ id: failed.latest_build.id }));
  expect(row?.state).toStartWith('{"sealed":"v1.');
  // No unencrypted copy of the state is left on disk.
  await until(() => !existsSync(join(world.server.directory, "terraform", "builds", id)));
  place.drop("fail");
  const gone = await deleteAndWait(admin, id);
  expect(gone.latest_build.status).toBe("deleted");
  expect(place.has("first")).toBe(false);
  // Terraform runs no provisioner for a resource that was never finished, but reports that it is removed.
  expect(await readOutputs(admin, gone)).toContain("2 destroyed");
});

testNeeding(
  wanted,
  "[TF-8] an apply that is canceled midway keeps its resources and leaves no process running",
  async () => {
    using place = makeTempFolder();
    const { admin } = world;
    const { id, latest_build } = await createWorkspace(
      admin,
      await createTemplate(admin, makeParts(place.path)),
      "cancelled",
    );
    await place.appears("second");
    await admin.patch<unknown>(`/api/v2/workspacebuilds/${latest_build.id}/cancel`, {});
    const canceled = await awaitBuild(admin, id);
    expect(canceled.latest_build.status).toBe("canceled");
    expect(findProcesses(place.path)).toEqual([]);
    expect(listNames(await loadState(admin, canceled))).toContain("first");
    place.put("open");
    // The next build continues from it: the first part is not created again.
    await createBuild(admin, id, "start");
    expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
    expect(readFileSync(join(place.path, "first"), "utf8")).toBe("made\n");
    expect((await deleteAndWait(admin, id)).latest_build.status).toBe("deleted");
    expect([place.has("first"), place.has("second")]).toEqual([false, false]);
  },
);

testNeeding(
  wanted,
  "[TF-9] an update to a version without a resource removes it, and the old version's provider is still found",
  async () => {
    using place = makeTempFolder();
    place.put("open");
    const { admin } = world;
    const template_id = await createTemplate(admin, makeParts(place.path));
    const { id } = await createWorkspace(admin, template_id, "updated");
    expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
    expect(place.has("second")).toBe(true);
    const next = await importVersion(admin, { "main.tf": HEAD + makePart(place.path, "first", "") }, { template_id });
    await createBuild(admin, id, "start", { template_version_id: next.id });
    const updated = await awaitBuild(admin, id);
    expect(updated.latest_build.status).toBe("running");
    expect(await readOutputs(admin, updated)).toContain("terraform_data.second: Destruction complete");
    expect(listNames(await loadState(admin, updated))).toEqual(["first"]);
    // Deleting with `orphan` removes no resources, and the log reports this.
    const forgotten = await deleteAndWait(admin, id, { orphan: true });
    expect(await readOutputs(admin, forgotten)).toContain("terraform_data.first is not removed");
    expect(place.has("first")).toBe(true);
  },
);

testNeeding(wanted, "[TF-26] a workspace is deleted although the template no longer accepts its values", async () => {
  using place = makeTempFolder();
  const { admin } = world;
  const makeLimited = (max: number): string => `${HEAD}
data "coder_parameter" "size" {
  name    = "size"
  type    = "number"
  default = "1"
  validation {
    min   = 1
    max   = ${max}
    error = "too large"
  }
}
${makePart(place.path, "first", "")}`;
  const template_id = await createTemplate(admin, makeLimited(8));
  const rich_parameter_values = [{ name: "size", value: "7" }];
  const { id } = await createWorkspace(admin, template_id, "limited", { rich_parameter_values });
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
  const next = await importVersion(admin, { "main.tf": makeLimited(3) }, { template_id });
  const gone = await deleteAndWait(admin, id, { template_version_id: next.id });
  expect([gone.latest_build.status, gone.latest_build.job.error]).toEqual(["deleted", undefined]);
  expect(await readOutputs(admin, gone)).toContain("The template rejects a value");
  expect(place.has("first")).toBe(false);
});

testNeeding(
  wanted,
  "[TF-11] [TF-24] secrets of the owner and the template's author are hidden in every log line and in the build's error",
  async () => {
    const main = `${HEAD}
variable "api_key" {
  sensitive = true
}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
resource "terraform_data" "loud" {
  count = data.coder_workspace.me.start_count
  input = coder_agent.main.token
  provisioner "local-exec" {
    command     = "echo key=$KEY session=$SESSION; echo token=$TOKEN; exit 3"
    environment = {
      KEY     = nonsensitive(var.api_key)
      SESSION = data.coder_workspace_owner.me.session_token
      TOKEN   = nonsensitive(coder_agent.main.token)
    }
  }
}`;
    const { admin } = world;
    const user_variable_values = [{ name: "api_key", value: "a-secret-key-value" }];
    const version = await importVersion(admin, { "main.tf": main }, { user_variable_values });
    expect(version.job.error).toBeUndefined();
    const body = { name: "loud", template_version_id: version.id };
    const { id: template_id } = await admin.post<{ id: string }>("/api/v2/organizations/default/templates", body);
    const { id } = await createWorkspace(admin, template_id, "loud");
    const failed = await awaitBuild(admin, id);
    expect(failed.latest_build.status).toBe("failed");
    const printed = (await readOutputs(admin, failed)) + failed.latest_build.job.error;
    expect(printed).toContain("key=(hidden)");
    expect(printed).toContain("token=(hidden)");
    const state = await loadState(admin, failed);
    const [, token = "none"] = /"token": "([^"]+)"/.exec(state) ?? [];
    const [, session = "none"] = /"session_token": "([^"]+)"/.exec(state) ?? [];
    expect(session).toMatch(/^[\w]{10}-[\w]{20,}$/);
    for (const secret of ["a-secret-key-value", token, session]) expect(printed).not.toContain(secret);
    // With a debug log level, the build's log has Terraform's own steps, without its traces.
    await createBuild(admin, id, "start", { log_level: "debug" });
    const again = await awaitBuild(admin, id);
    type Line = { log_level: string; output: string };
    const lines = await admin.get<Line[]>(`/api/v2/workspacebuilds/${again.latest_build.id}/logs`);
    expect(lines.filter(({ log_level }) => log_level === "debug").length).toBeGreaterThan(20);
    expect(lines.filter(({ log_level }) => log_level === "trace")).toEqual([]);
    const log = JSON.stringify(lines);
    const newest = await loadState(admin, again);
    const secrets = [...newest.matchAll(/"(?:session_token|token)": "([^"]{8,})"/g)].map(([, one = ""]) => one);
    expect(secrets.length).toBeGreaterThan(1);
    for (const secret of ["a-secret-key-value", ...secrets]) expect(log).not.toContain(secret);
    expect((await deleteAndWait(admin, id)).latest_build.status).toBe("deleted");
  },
);

testNeeding(
  wanted,
  "[TF-11] the owner's session token reaches the agent, is hidden in answers, creates nothing that outlives it, and ends with a stop",
  async () => {
    const { admin, server } = world;
    const main = `${HEAD}resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
  env  = { CODER_SESSION_TOKEN = data.coder_workspace_owner.me.session_token, PLAIN = "yes" }
}
resource "terraform_data" "machine" {
  input = coder_agent.main.id
}
`;
    const { template } = await makeTerraformTemplate(admin, { "main.tf": main }, "signed-in");
    const { id } = await createWorkspace(admin, template.id, "signed-in");
    const started = await awaitBuild(admin, id);
    const agent = started.latest_build.resources.flatMap(({ agents }) => agents)[0];
    expect(agent?.environment_variables).toEqual({ CODER_SESSION_TOKEN: "(hidden)", PLAIN: "yes" });
    const manifest = await loadManifest(getContext(server), agent?.id ?? "", server.url);
    const session = admin.withToken(manifest.environmentVariables?.CODER_SESSION_TOKEN ?? "");
    expect((await session.get<{ count: number }>("/api/v2/workspaces")).count).toBe(1);
    const refused = [
      await session.fetch("POST", "/api/v2/users/me/keys/tokens", { token_name: "longer" }),
      await session.fetch("POST", "/api/v2/users/me/secrets", { name: "A", value: "b", env_name: "BASH_ENV" }),
      await session.fetch("GET", "/api/v2/deployment/config"),
      await session.fetch("PATCH", `/api/v2/workspaces/${id}/acl`, { user_roles: {} }),
    ];
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
    await createBuild(admin, id, "stop");
    await awaitBuild(admin, id);
    expect((await session.fetch("GET", "/api/v2/workspaces")).status).toBe(401);
    await deleteAndWait(admin, id);
  },
);

testNeeding(wanted, "[TF-12] a template sees the listed variables and none of the server's own", async () => {
  using place = makeTempFolder();
  const environment = {
    AWS_PROFILE: "mine",
    SLIPWAY_ADMIN_PASSWORD: "hush",
    CODER_AGENT_TOKEN: "server's own",
    DATABASE_PASSWORD: "hush",
    TF_LOG: "TRACE",
    TF_VAR_x: "no",
  };
  await using other = await openTerraformWorld({ environment });
  const main = `${HEAD}resource "terraform_data" "x" {
  provisioner "local-exec" { command = "env > ${place.path}/env; echo \${data.coder_workspace.me.access_url}/icon > ${place.path}/url" }
}`;
  const { id } = await createWorkspace(other.admin, await createTemplate(other.admin, main), "env");
  expect((await awaitBuild(other.admin, id)).latest_build.job.error).toBeUndefined();
  const seen = readFileSync(join(place.path, "env"), "utf8");
  const names = seen.split("\n").map((line) => line.split("=")[0] ?? "");
  expect(names).toEqual(expect.arrayContaining(["PATH", "HOME", "AWS_PROFILE", "CODER_WORKSPACE_ID"]));
  expect(names.filter((name) => /^(?:SLIPWAY_|TF_LOG|TF_VAR_|DATABASE_)/.test(name))).toEqual([]);
  expect(seen).not.toContain("hush");
  expect(seen).not.toContain("server's own");
  // Templates append a path to the server's address.
  expect(readFileSync(join(place.path, "url"), "utf8")).toBe(`${other.server.url.origin}/icon\n`);
  expect((await deleteAndWait(other.admin, id)).latest_build.status).toBe("deleted");
});

testNeeding(
  wanted,
  "[TF-10] a server that is killed during an apply continues after its start from the existing state, and creates nothing twice",
  async () => {
    using folder = makeTempFolder();
    await using server = await ServerSlot.make();
    const env = { ...toTerraformOptions(folder.path).env, HOME: folder.path };
    await server.start({ env });
    const client = await server.client.signIn(ADMIN.email, ADMIN.password);
    using place = makeTempFolder();
    const { id } = await createWorkspace(client, await createTemplate(client, makeParts(place.path)), "killed");
    await place.appears("second");
    server.currentProcess.kill("SIGKILL");
    await server.currentProcess.ended;
    place.put("open");
    await server.start({ env });
    const after = await awaitBuild(client, id);
    expect([after.latest_build.status, after.latest_build.job.error]).toEqual(["running", undefined]);
    expect(listNames(await loadState(client, after))).toEqual(["first", "second"]);
    expect(readFileSync(join(place.path, "first"), "utf8")).toBe("made\n");
    expect((await deleteAndWait(client, id)).latest_build.status).toBe("deleted");
    expect([place.has("first"), place.has("second")]).toEqual([false, false]);
    await until(() => readdirSync(join(server.directory, "terraform", "builds")).length === 0);
    await server.stop();
    expect(findProcesses(folder.path)).toEqual([]);
  },
);
