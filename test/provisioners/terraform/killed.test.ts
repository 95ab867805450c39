// The program is killed from outside: by an operator, or for memory. The job reports the signal.
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

/** A program of this name that ends as `dies` says when it is called with the command named in the file `victim`. */
const mortal = (name: "terraform" | "tofu", dies: string) => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-tf-mortal-"));
  noteFolder(folder);
  mkdirSync(join(folder, "bin"));
  const path = join(folder, "bin", name);
  const victim = join(folder, "victim");
  const real = Bun.which("terraform") ?? Bun.which("tofu");
  writeFileSync(victim, "");
  writeFileSync(path, `#!/bin/sh\n[ "$1" = "$(cat ${victim})" ] && ${dies}\nexec ${real} "$@"\n`);
  chmodSync(path, 0o755);
  return {
    path,
    kills: (command: string): void => writeFileSync(victim, command),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

for (const name of ["terraform", "tofu"] as const) {
  testNeeding(
    [needs.terraform],
    `[TF-44] if any command of ${name} is killed, the job names the command, the signal and the possible cause`,
    async () => {
      // The second one is how a shell around the program reports it.
      using program = mortal(name, name === "tofu" ? "exit 137" : "kill -9 $$");
      await using world = await openTerraformWorld({ env: { SLIPWAY_TERRAFORM_BINARY: program.path } });
      const { admin } = world;
      const files = { "main.tf": `${HEAD}resource "terraform_data" "first" {}\n` };
      const killedMessage = (command: string): string =>
        `${name} ${command} was killed by SIGKILL; the machine may have run out of memory. Check its kernel log.`;
      for (const command of ["init", "plan", "show", "graph"]) {
        program.kills(command);
        expect((await importVersion(admin, files)).job.error).toBe(killedMessage(command));
      }
      program.kills("");
      const { template } = await makeTerraformTemplate(admin, files, "mortal");
      program.kills("apply");
      const { id } = await createWorkspace(admin, template.id, "mortal");
      expect((await awaitBuild(admin, id)).latest_build.job.error).toBe(killedMessage("apply"));
      program.kills("");
      await createBuild(admin, id, "start");
      expect((await awaitBuild(admin, id)).latest_build.status).toBe("running");
    },
  );
}

testNeeding(
  [needs.terraform],
  "[TF-44] an apply that is killed midway keeps its resources and leaves no process running; the error names any other signal",
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
    const pid = async (): Promise<number> => {
      await until(() => existsSync(join(folder, "pid")), { what: "the apply" });
      const found = Number(readFileSync(join(folder, "pid"), "utf8"));
      rmSync(join(folder, "pid"));
      return found;
    };
    process.kill(await pid(), "SIGKILL");
    const killed = await awaitBuild(admin, id);
    expect(killed.latest_build.job.error).toContain(
      "apply was killed by SIGKILL; the machine may have run out of memory. Check its kernel log.",
    );
    await until(() => findProcesses(`${folder}/open`).length === 0);
    const state = await admin.fetch("GET", `/api/v2/workspacebuilds/${killed.latest_build.id}/state`);
    expect(await state.text()).toContain('"first"');
    await createBuild(admin, id, "start");
    process.kill(await pid(), "SIGHUP");
    const hung = await awaitBuild(admin, id);
    expect(hung.latest_build.job.error).toMatch(/apply was killed by SIGHUP\.$/);
    await createBuild(admin, id, "start");
    process.kill(await pid(), "SIGTERM");
    const interrupted = await awaitBuild(admin, id);
    expect(interrupted.latest_build.job.error).toMatch(
      /apply: it was interrupted from outside, by SIGINT or SIGTERM\. \(and \d more/,
    );
    await until(() => findProcesses(`${folder}/open`).length === 0);
    await createBuild(admin, id, "start");
    // It ends on its own then, and reports everything it knows.
    process.kill(await pid(), "SIGSEGV");
    const crashed = await awaitBuild(admin, id);
    expect(crashed.latest_build.job.error).toMatch(/apply: SIGSEGV: /);
    await until(() => findProcesses(`${folder}/open`).length === 0);
    writeFileSync(join(folder, "open"), "");
    await createBuild(admin, id, "delete");
    await awaitWorkspace(admin, id, (one) => one.latest_build.status === "deleted");
  },
);

testNeeding([needs.terraform], "[TF-44] a killed plan for a form or for a new workspace is reported, too", async () => {
  using program = mortal("terraform", "kill -9 $$");
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
    program.kills(command);
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
