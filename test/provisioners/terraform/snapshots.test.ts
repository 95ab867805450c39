// Snapshots, forks and restores of workspaces whose disks only their template can copy, with the template's module and the real program.
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Failpoint, MODULE_FAILPOINTS } from "#base/failpoint.ts";
import { findSnapshot } from "#db/workspaces/snapshots.ts";
import type { Template } from "#schema/templates/template.ts";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Client } from "#src/client.ts";
import { ServerSlot } from "#test/crash/server.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { scaleTimeout } from "#test/support/pace.ts";
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
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace } from "#test/support/workspaces.ts";

const requirements = [needs.terraform];
let world: TerraformWorld;
beforeAll(async () => {
  if (needs.terraform.found) world = await openTerraformWorld();
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** Creates a folder for disks and their copies. */
const makeTempFolder = () => {
  const path = mkdtempSync(join(tmpdir(), "slipway-tf-disks-"));
  noteFolder(path);
  const listNames = (prefix: string): string[] => readdirSync(path).filter((name) => name.startsWith(prefix));
  return {
    path,
    listNames,
    put: (name: string, text = ""): void => writeFileSync(join(path, name), text),
    read: (name: string): string => readFileSync(join(path, name), "utf8"),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
};

/** Returns a template whose disk is a folder with a file. `$DISK.made` counts how often the disk is created. */
const makeTemplateText = (folder: string): string => `
terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
variable "slipway_snapshot" {
  type    = any
  default = null
}
variable "place" {
  default = "${folder}"
}
variable "key" {
  sensitive = true
  default   = "cloud-key-of-the-author"
}
resource "terraform_data" "disk" {
  input            = "\${var.place}/disk-\${data.coder_workspace.me.id}"
  triggers_replace = [var.slipway_snapshot]
  provisioner "local-exec" {
    command     = "mkdir $DISK && if [ -n \\"$COPY\\" ]; then cp $COPY/file $DISK/file; fi; echo made >> $DISK.made"
    environment = { DISK = self.input, COPY = try(var.slipway_snapshot.copy, "") }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "rm -rf \${self.input}"
  }
}
output "slipway_snapshot" {
  value = { disk = terraform_data.disk.output, note = "$\${untouched}" }
}
`;

/** The template's snapshot module. Its apply waits for the file `open`, and fails if the file `fail` exists. */
const MODULE = `
variable "slipway_snapshot" {}
variable "slipway_snapshot_id" {
  type = string
}
variable "place" {
  type = string
}
variable "key" {
  type      = string
  sensitive = true
}
resource "terraform_data" "begun" {
  input = "\${var.place}/begun-\${var.slipway_snapshot_id}"
  provisioner "local-exec" { command = "echo made >> \${self.input}" }
  provisioner "local-exec" {
    when    = destroy
    command = "rm \${self.input}"
  }
}
resource "terraform_data" "copy" {
  input      = "\${var.place}/copy-\${var.slipway_snapshot_id}"
  depends_on = [terraform_data.begun]
  provisioner "local-exec" {
    command     = "until [ -e $PLACE/open ]; do sleep 0.05; done; echo $KEY; [ ! -e $PLACE/fail ] && mkdir $COPY && cp $DISK/file $COPY/file"
    environment = { COPY = self.input, PLACE = var.place, DISK = var.slipway_snapshot.disk, KEY = nonsensitive(var.key) }
  }
  provisioner "local-exec" {
    when    = destroy
    command = "rm -r \${self.input}"
  }
}
output "slipway_snapshot" {
  value = { copy = terraform_data.copy.output, note = var.slipway_snapshot.note }
}
`;

const makeFiles = (folder: string) => ({ "main.tf": makeTemplateText(folder), "slipway-snapshot/main.tf": MODULE });
let templateCount = 0;
const makeTemplate = async (client: Client, folder: string): Promise<Template> => {
  templateCount += 1;
  return (await makeTerraformTemplate(client, makeFiles(folder), `disks-${templateCount}`)).template;
};

const snapshotsPath = (id: string): string => `/api/v2/workspaces/${id}/snapshots`;
const loadSnapshots = (client: Client, id: string): Promise<Snapshots> => client.get<Snapshots>(snapshotsPath(id));
const awaitSnapshots = (client: Client, id: string): Promise<Snapshot[]> =>
  until<Snapshot[] | undefined>(async () => {
    const { snapshots } = await loadSnapshots(client, id);
    return snapshots.every(({ status }) => status === "ready" || status === "failed") ? snapshots : undefined;
  });
const createSnapshot = async (client: Client, id: string): Promise<Snapshot> => {
  const { id: snapshot } = await client.post<Snapshot>(snapshotsPath(id), { name: "kept" });
  const found = (await awaitSnapshots(client, id)).find((candidate) => candidate.id === snapshot);
  if (!found) throw new Error("the snapshot does not exist");
  return found;
};
const build = async (client: Client, id: string, transition: string): Promise<void> => {
  await createBuild(client, id, transition);
  await awaitBuild(client, id);
};

testNeeding(
  requirements,
  "[TF-51] the template's module creates snapshots, restores and forks, and removes its resources",
  async () => {
    using temp = makeTempFolder();
    temp.put("open");
    const { admin, server } = world;
    const template = await makeTemplate(admin, temp.path);
    expect([template.snapshots_unsupported, template.has_trash]).toEqual(["", false]);
    const { id } = await createWorkspace(admin, template.id, "disks");
    await awaitBuild(admin, id);
    const disk = `disk-${id}`;
    temp.put(`${disk}/file`, "one");
    const snapshot = await createSnapshot(admin, id);
    expect(snapshot).toMatchObject({ status: "ready", method: "module", error: "" });
    expect(temp.read(`copy-${snapshot.id}/file`)).toBe("one");
    const { store } = getContext(server);
    expect((await store.get(findSnapshot({ id: snapshot.id })))?.sealed_state).toStartWith("v1.");
    await until(() => readdirSync(join(server.directory, "terraform", "snapshots")).length === 0);
    const { unsupported } = await admin.get<HomeBackups>(`/api/v2/workspaces/${id}/home-backups`);
    expect(unsupported).toBe("Home backups are not available for Terraform templates.");

    temp.put(`${disk}/file`, "two");
    await admin.post(`${snapshotsPath(id)}/${snapshot.id}/restore`, {});
    await awaitWorkspace(
      admin,
      id,
      ({ latest_build }) => latest_build.transition === "start" && latest_build.status === "running",
    );
    expect(temp.read(`${disk}/file`)).toBe("one");
    await admin.delete(`${snapshotsPath(id)}/${snapshot.id}`);
    await until(async () => (await loadSnapshots(admin, id)).snapshots.length === 0);
    expect([temp.listNames("copy-"), temp.listNames("begun-")]).toEqual([[], []]);
    // The workspace keeps its restored disk, although the snapshot was deleted.
    temp.put(`${disk}/file`, "three");
    await build(admin, id, "stop");
    expect(temp.read(`${disk}/file`)).toBe("three");
    expect(temp.read(`${disk}.made`)).toBe("made\nmade\n");

    const forks = `/api/v2/workspaces/${id}/forks`;
    const forked = await admin.post<Fork>(forks, { start: true });
    const fork = forked.copies[0]?.workspace_id ?? "";
    await until(async () => (await admin.get<Fork>(`${forks}/${forked.id}`)).status === "ready");
    expect(temp.read(`disk-${fork}/file`)).toBe("three");
    await until(() => temp.listNames("copy-").length === 0);
    expect(temp.read(`disk-${fork}.made`)).toBe("made\n");

    await createSnapshot(admin, id);
    for (const workspace of [fork, id]) {
      await createBuild(admin, workspace, "delete");
      await awaitWorkspace(admin, workspace, ({ latest_build }) => latest_build.status === "deleted");
    }
    await until(() => [...temp.listNames("copy-"), ...temp.listNames("begun-")].length === 0);
    expect(temp.listNames("disk-").filter((name) => !name.endsWith(".made"))).toEqual([]);
  },
);

testNeeding(
  requirements,
  "[TF-52] [SN-7] an unusable module fails the import, and a failed snapshot's resources are removed",
  async () => {
    using temp = makeTempFolder();
    const { admin } = world;
    const files = makeFiles(temp.path);
    const invalidTemplates = [
      { ...files, "main.tf": files["main.tf"].replace(/output[\s\S]*$/, "") },
      { ...files, "main.tf": files["main.tf"].replace("default = null", "") },
      { ...files, "slipway-snapshot/main.tf": `${MODULE}variable "size" {}` },
      { ...files, "slipway-snapshot/main.tf": MODULE.replace("var.slipway_snapshot.disk", "var.disk") },
    ];
    const errors = await Promise.all(
      invalidTemplates.map(async (invalid) => (await importVersion(admin, invalid)).job.error),
    );
    expect(errors.slice(0, 3)).toEqual([
      'The folder slipway-snapshot needs an output "slipway_snapshot" in the template.',
      'The folder slipway-snapshot needs a variable "slipway_snapshot" with the default null in the template.',
      'The variable "size" of slipway-snapshot needs a default, or a variable of the same name in the template.',
    ]);
    expect(errors[3]).toStartWith("The module in slipway-snapshot is not valid.");
    expect(errors[3]).toContain("Reference to undeclared input variable");

    const { "main.tf": mainFile } = files;
    const plain = await makeTerraformTemplate(admin, { "main.tf": mainFile }, "disks-alone");
    expect(plain.template.snapshots_unsupported).toContain("no folder slipway-snapshot");

    temp.put("open");
    temp.put("fail");
    const { id } = await createWorkspace(admin, (await makeTemplate(admin, temp.path)).id, "fails");
    await awaitBuild(admin, id);
    const failed = await createSnapshot(admin, id);
    expect(failed.status).toBe("failed");
    expect(failed.error).toContain("local-exec provisioner error");
    expect(failed.error).not.toContain("cloud-key-of-the-author");
    expect([temp.listNames("begun-"), temp.listNames("copy-")]).toEqual([[], []]);
    await admin.delete(`${snapshotsPath(id)}/${failed.id}`);
    await until(async () => (await loadSnapshots(admin, id)).snapshots.length === 0);
    await createBuild(admin, id, "delete");
    await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  },
);

testNeeding(
  requirements,
  "[TF-53] a server that is killed while a module creates or removes a snapshot creates nothing twice",
  async () => {
    using folder = makeTempFolder();
    using temp = makeTempFolder();
    await using server = await ServerSlot.make();
    const env = { ...toTerraformOptions(folder.path).env, HOME: folder.path };
    await server.start({ env });
    const client = await server.client.signIn(ADMIN.email, ADMIN.password);
    const { id } = await createWorkspace(client, (await makeTemplate(client, temp.path)).id, "killed");
    await awaitBuild(client, id);
    temp.put(`disk-${id}/file`, "one");
    const snapshots = join(server.directory, "terraform", "snapshots");
    const startWithFailpoint = async (point: Failpoint): Promise<void> => {
      await server.start({ env: { ...env, SLIPWAY_FAILPOINT: point } });
    };
    const awaitExitSignal = async (): Promise<string> => (await server.currentProcess.ended).signal;
    // The first kill is in the middle of the module's apply.
    const { id: snapshot } = await client.post<Snapshot>(snapshotsPath(id), { name: "kept" });
    await until(() => temp.listNames("begun-").length === 1);
    server.currentProcess.kill("SIGKILL");
    await awaitExitSignal();
    temp.put("open");
    const [applied, stored, removed] = MODULE_FAILPOINTS;
    for (const point of [applied, stored]) {
      await startWithFailpoint(point);
      expect([point, await awaitExitSignal()]).toEqual([point, "SIGKILL"]);
      expect(temp.read(`copy-${snapshot}/file`)).toBe("one");
    }
    await startWithFailpoint(removed);
    expect(await awaitSnapshots(client, id)).toMatchObject([{ id: snapshot, status: "ready" }]);
    expect(temp.read(`begun-${snapshot}`)).toBe("made\n");
    await until(() => readdirSync(snapshots).length === 0);
    await client.delete(`${snapshotsPath(id)}/${snapshot}`).catch(() => {});
    expect(await awaitExitSignal()).toBe("SIGKILL");
    await server.start({ env });
    await until(async () => (await loadSnapshots(client, id)).snapshots.length === 0);
    expect([temp.listNames("copy-"), temp.listNames("begun-"), readdirSync(snapshots)]).toEqual([[], [], []]);
    await createBuild(client, id, "delete");
    await awaitWorkspace(client, id, ({ latest_build }) => latest_build.status === "deleted");
    await server.stop();
    expect(findProcesses(folder.path)).toEqual([]);
  },
  scaleTimeout(240_000),
);
