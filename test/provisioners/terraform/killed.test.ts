// Terraform is killed by an operator or because of memory pressure. The job reports the signal.
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs, testNeeding } from "#test/support/needs.ts";
import { noteFolder } from "#test/support/run/ledger.ts";
import { importVersion } from "#test/support/templates.ts";
import { findProcesses, makeTerraformTemplate, openTerraformWorld } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const HEAD = `terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
`;

/** Creates a program with this name that runs `exitCommand` for a command selected with `killOn`, and otherwise calls the real program. */
const createKillableProgram = (name: "terraform" | "tofu", exitCommand: string) => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-tf-mortal-"));
  noteFolder(folder);
  mkdirSync(join(folder, "bin"));
  const path = join(folder, "bin", name);
  const commandFile = join(folder, "victim");
  const real = Bun.which("terraform") ?? Bun.which("tofu");
  writeFileSync(commandFile, "");
  writeFileSync(path, `#!/bin/sh\n[ "$1" = "$(cat ${commandFile})" ] && ${exitCommand}\nexec ${real} "$@"\n`);
  chmodSync(path, 0o755);
  return {
    path,
    killOn: (command: string): void => writeFileSync(commandFile, command),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

for (const name of ["terraform", "tofu"] as const) {
  testNeeding(
    [needs.terraform],
    `[TF-44] if a command of ${name} is killed, the job names the command, the signal and a possible cause`,
    async () => {
      // Exit code 137 is how a shell around the program reports the signal.
      using program = createKillableProgram(name, name === "tofu" ? "exit 137" : "kill -9 $$");
      await using world = await openTerraformWorld({ env: { SLIPWAY_TERRAFORM_BINARY: program.path } });
      const { admin } = world;
      const files = { "main.tf": `${HEAD}resource "terraform_data" "first" {}\n` };
      const killedMessage = (command: string): string =>
        `${name} ${command} was killed by SIGKILL; the machine may have run out of memory. Check its kernel log.`;
      for (const command of ["init", "plan", "show", "graph"]) {
        program.killOn(command);
        expect((await importVersion(admin, files)).job.error).toBe(killedMessage(command));
      }
      program.killOn("");
      const { template } = await makeTerraformTemplate(admin, files, "mortal");
      program.killOn("apply");
      const { id } = await createWorkspace(admin, template.id, "mortal");
      expect((await awaitBuild(admin, id)).latest_build.job.error).toBe(killedMessage("apply"));
      program.killOn("");
      await createBuild(admin, id, "start");
      expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
    },
  );
}

testNeeding(
  [needs.terraform],
  "[TF-44] an apply that is killed midway keeps its resources and leaves no process; the error names the signal",
  async () => {
    await using world = await openTerraformWorld();
    const { admin, folder } = world;
    const main = `${HEAD}
resource "terraform_data" "first" {}
resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "echo $PPID > ${folder}/next && mv ${folder}/next ${folder}/pid; [ -e ${folder}/open ] || OPEN=${folder}/open exec sleep 600" }
}`;
    const { template } = await makeTerraformTemplate(admin, { "main.tf": main }, "killed");
    const { id } = await createWorkspace(admin, template.id, "killed");
    const takePid = async (): Promise<number> => {
      await until(() => existsSync(join(folder, "pid")), { what: "the apply" });
      const found = Number(readFileSync(join(folder, "pid"), "utf8"));
      rmSync(join(folder, "pid"));
      return found;
    };
    process.kill(await takePid(), "SIGKILL");
    const killed = await awaitBuild(admin, id);
    expect(killed.latest_build.job.error).toContain(
      "apply was killed by SIGKILL; the machine may have run out of memory. Check its kernel log.",
    );
    await until(() => findProcesses(`${folder}/open`).length === 0);
    const state = await admin.fetch("GET", `/api/v2/workspacebuilds/${killed.latest_build.id}/state`);
    expect(await state.text()).toContain('"first"');
    await createBuild(admin, id, "start");
    process.kill(await takePid(), "SIGHUP");
    const hungUp = await awaitBuild(admin, id);
    expect(hungUp.latest_build.job.error).toMatch(/apply was killed by SIGHUP\.$/);
    await createBuild(admin, id, "start");
    process.kill(await takePid(), "SIGTERM");
    const interrupted = await awaitBuild(admin, id);
    expect(interrupted.latest_build.job.error).toMatch(
      /apply: it was interrupted from outside, by SIGINT or SIGTERM\. \(and \d more/,
    );
    await until(() => findProcesses(`${folder}/open`).length === 0);
    await createBuild(admin, id, "start");
    // After SIGSEGV, the program exits with a report.
    process.kill(await takePid(), "SIGSEGV");
    const crashed = await awaitBuild(admin, id);
    expect(crashed.latest_build.job.error).toMatch(/apply: SIGSEGV: /);
    await until(() => findProcesses(`${folder}/open`).length === 0);
    writeFileSync(join(folder, "open"), "");
    await createBuild(admin, id, "delete");
    await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  },
);

testNeeding([needs.terraform], "[TF-44] reports a killed plan for a form or for a new workspace", async () => {
  using program = createKillableProgram("terraform", "kill -9 $$");
  await using world = await openTerraformWorld({ env: { SLIPWAY_TERRAFORM_BINARY: program.path } });
  const { admin } = world;
  const main = `${HEAD}
data "coder_parameter" "gpu" {
  name    = "gpu"
  type    = "bool"
  default = false
}
data "coder_parameter" "kind" {
  count   = data.coder_parameter.gpu.value == "true" ? 1 : 0
  name    = "kind"
  default = "small"
}`;
  const { template, version } = await makeTerraformTemplate(admin, { "main.tf": main }, "asked");
  for (const command of ["plan", "show"]) {
    program.killOn(command);
    const path = `/api/v2/templateversions/${version.id}/dynamic-parameters/evaluate`;
    const { diagnostics } = await admin.post<{ diagnostics: { summary: string }[] }>(path, { inputs: {} });
    expect(diagnostics.map(({ summary }) => summary).join()).toContain(`${command} was killed by SIGKILL`);
    const refused = await createWorkspace(admin, template.id, "asked").catch((error) => error);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([
      503,
      expect.stringContaining(`terraform ${command} was killed by SIGKILL`),
    ]);
  }
});
