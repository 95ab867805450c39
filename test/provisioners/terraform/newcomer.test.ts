// A newcomer with their own template: a server in an empty folder with default settings, the page's commands, and an unmodified template.
// With the compiled program, nothing else is needed.
import { expect } from "bun:test";
import { cpSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { installProgram } from "#test/cli/client-world.ts";
import { findMarkedBlocks, readPage } from "#test/support/documents.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { findCompiledProgram, toProgramCommand } from "#test/support/program.ts";
import { ADMIN, readAnnouncedUrl, tempDirectory } from "#test/support/server.ts";
import { findProcesses, toTerraformOptions } from "#test/support/terraform.ts";
import { templateFolder } from "./comparison.ts";
import { startRunningModel } from "./life/model.ts";

const [commands = ""] = findMarkedBlocks(readPage("docs/templates-terraform.md"), "tried with terraform");

testNeeding(
  [needs.terraform],
  "[TF-31] [RP-8] the page's commands work as printed, with relative paths of data, program and configuration",
  async () => {
    using folder = tempDirectory();
    await using model = await startRunningModel();
    const home = folder.path;
    const { env: { SLIPWAY_AGENT_BINARY = "" } = {} } = toTerraformOptions(join(home, "tools"));
    symlinkSync(join(needs.terraform.file, "rc"), join(home, "rc"));
    symlinkSync(Bun.which("terraform") ?? Bun.which("tofu") ?? "", join(home, "terraform"));
    mkdirSync(join(home, "my-template"));
    cpSync(join(templateFolder("minimal"), "main.tf"), join(home, "my-template", "main.tf"));
    const env = { PATH: installProgram(home), HOME: home, TMPDIR: tmpdir() };
    await using server = Bun.spawn([...toProgramCommand(), "serve"], {
      cwd: home,
      env: {
        ...env,
        SLIPWAY_ADDRESS: "127.0.0.1:0",
        SLIPWAY_ADMIN_EMAIL: ADMIN.email,
        SLIPWAY_ADMIN_USERNAME: ADMIN.username,
        SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
        // The provider comes from a local mirror instead of its registry.
        SLIPWAY_TERRAFORM_CLI_CONFIG: "./rc",
        SLIPWAY_TERRAFORM_BINARY: "./terraform",
        // With a lower priority than the other tests, the same work would take ten times as long.
        SLIPWAY_TEST_EVEN: "1",
        ...(findCompiledProgram() ? {} : { SLIPWAY_AGENT_BINARY }),
      },
      stdio: ["ignore", "pipe", "ignore"],
    });
    const url = await readAnnouncedUrl(server.stdout);
    const admin = await new Client(url).signIn(ADMIN.email, ADMIN.password);
    const provider = { provider: "openai-compat", display_name: "Runner", base_url: `${model.url}/v1`, api_key: "k" };
    const { id } = await admin.post<{ id: string }>("/api/v2/chats/providers", provider);
    await admin.post("/api/v2/chats/model-configs", { provider_id: id, model: "runner", is_default: true });
    const login = `printf %s '${ADMIN.password}' | slipway login ${url.origin} --email ${ADMIN.email} --password-stdin`;
    const furtherCommands = "slipway workspaces start mine --update\nslipway workspaces delete mine --yes";
    const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", `${login}\n${commands}${furtherCommands}`], {
      cwd: home,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect([code, code === 0 ? "" : err]).toEqual([0, ""]);
    const [, machineFolder = "none"] = /^(\/tmp\/slipway-tf-[0-9a-f-]+)$/m.exec(out) ?? [];
    expect(machineFolder).not.toBe("none");
    for (const message of ["mine is running.", "mine is stopped.", "It said:", "mine is deleted."])
      expect(out).toContain(message);
    expect(findProcesses(machineFolder)).toEqual([]);
    rmSync(machineFolder, { recursive: true, force: true });
    server.kill("SIGTERM");
    expect(await server.exited).toBe(0);
  },
  scaleTimeout(240_000),
);
