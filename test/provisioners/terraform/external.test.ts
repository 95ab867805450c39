// A workspace on a machine that the server does not start. A person runs a command on it instead.
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ExternalAgentCredentials } from "#schema/workspaces/external-agent.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import type { ApiError } from "#src/client.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { noteFolder } from "#test/support/run/ledger.ts";
import { makeTerraformTemplate, openTerraformWorld, type TerraformWorld } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

const MAIN = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
resource "coder_external_agent" "main" {
  agent_id = coder_agent.main.id
}
`;

const getAgent = ({ latest_build }: Workspace) => latest_build.resources.flatMap(({ agents = [] }) => agents)[0];

/** Runs the command with its own home, as a person would on their machine. Ends its processes when disposed. */
const runOnMachine = (command: string, extraEnv: Record<string, string> = {}) => {
  const home = mkdtempSync(join(tmpdir(), "slipway-machine-"));
  noteFolder(home);
  const env = { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: home, SHELL: "/bin/sh", ...extraEnv };
  const child = Bun.spawn(["setsid", "sh", "-c", command], {
    cwd: home,
    env,
    stdio: ["ignore", "ignore", "ignore"],
  });
  return {
    async [Symbol.asyncDispose]() {
      try {
        process.kill(-child.pid, "SIGTERM");
      } catch {
        // The process has ended.
      }
      await child.exited;
      rmSync(home, { recursive: true, force: true });
    },
  };
};

testNeeding(
  requirements,
  "[TF-17] an agent on any machine connects with the command that its workspace's users get, with either program name",
  async () => {
    const { template, version } = await makeTerraformTemplate(world.admin, { "main.tf": MAIN }, "outside");
    expect(version.has_external_agent).toBe(true);
    const workspace = await createWorkspace(world.admin, template.id, "outside");
    const path = `/api/v2/workspaces/${workspace.id}`;
    const built = await awaitBuild(world.admin, workspace.id);
    const name = getAgent(built)?.name ?? "";
    const credentials = await world.admin.get<ExternalAgentCredentials>(`${path}/external-agent/${name}/credentials`);
    expect(credentials.command).toContain("/api/v2/init-script/linux/amd64");
    expect(credentials.command).toContain(credentials.agent_token);
    const isConnected = async () => getAgent(await world.admin.get<Workspace>(path))?.status === "connected";
    {
      await using _first = runOnMachine(credentials.command);
      await until(isConnected);
    }
    await until(async () => !(await isConnected()));
    // A person can also download the program under its other name.
    const url = new URL("/", world.server.url);
    const downloadCommand = `curl -fsSL "${url.href}bin/coder-linux-amd64" -o coder && chmod 755 coder && exec ./coder agent`;
    await using _second = runOnMachine(downloadCommand, {
      CODER_AGENT_URL: url.href,
      CODER_AGENT_TOKEN: credentials.agent_token,
    });
    await until(isConnected);
    const missing = world.admin.get(`${path}/external-agent/missing/credentials`);
    expect(((await missing.catch((error) => error)) as ApiError).status).toBe(404);
  },
);
