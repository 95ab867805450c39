// Leftovers of earlier runs in the provisioner's folders, when the server starts.
import { expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { detachSharedProviders } from "#src/provisioners/terraform/providers.ts";
import { Session } from "#src/provisioners/terraform/session.ts";
import { TerraformProvisioner } from "#src/provisioners/terraform/terraform.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";

const DAY_MS = 86_400_000;

test("[TF-27] a start removes unused plugins and the folders of imports and old forms, but never a build's folder", async () => {
  using temp = tempDirectory();
  const root = temp.path;
  const clock = new ManualClock(Date.now());
  const makeOldFolder = (path: string, days: number): string => {
    const folder = join(root, path);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "file"), "");
    const time = new Date(clock.now() - days * DAY_MS);
    utimesSync(folder, time, time);
    return folder;
  };
  const used = makeOldFolder("plugins/registry.terraform.io/coder/coder/2.19.0/linux_amd64", 29);
  const unused = makeOldFolder("plugins/registry.terraform.io/coder/coder/2.18.0/linux_amd64", 31);
  const [importFolder, recentForm, oldForm] = [
    makeOldFolder("imports/a", 0),
    makeOldFolder("forms/a", 6),
    makeOldFolder("forms/b", 8),
  ];
  const formRun = makeOldFolder("forms/a/run-1", 0);
  const build = makeOldFolder("builds/c", 400);
  const settings = { binary: undefined, cliConfig: undefined, pass: [], applyLimit: 60_000, formLimit: 10_000 };
  await new TerraformProvisioner({ root, clock, env: {}, ...settings }).prepare();
  const expected = [used, recentForm, build];
  const folders = [...expected, unused, importFolder, oldForm, formRun];
  expect(folders.filter((folder) => existsSync(folder))).toEqual(expected);
});

test("[TF-37] removes a build's retained state once it is stored, unless it is unreadable or a newer one exists", async () => {
  using temp = tempDirectory();
  const settings = { binary: undefined, cliConfig: undefined, pass: [], applyLimit: 60_000, formLimit: 10_000 };
  const provisioner = new TerraformProvisioner({ root: temp.path, clock: new ManualClock(0), env: {}, ...settings });
  const leaveSession = async (id: string, serial: number): Promise<Session> => {
    const session = new Session(join(temp.path, "builds", id));
    await session.writeState(JSON.stringify({ version: 4, lineage: "l", serial }));
    return session;
  };
  const listBuildFolders = (): string[] => readdirSync(join(temp.path, "builds")).sort();
  for (const [id, serial] of [
    ["a", 3],
    ["b", 4],
  ] as const)
    await leaveSession(id, serial);
  mkdirSync(join(temp.path, "builds/empty/w"), { recursive: true });
  const truncated = await leaveSession("torn", 1);
  writeFileSync(join(truncated.work, "terraform.tfstate"), '{"version": 4, "lin');
  const retained = await provisioner.listRetained();
  expect(retained.toSorted((a, b) => a.serial - b.serial)).toEqual([
    { workspace_id: "a", lineage: "l", serial: 3 },
    { workspace_id: "b", lineage: "l", serial: 4 },
  ]);
  expect(listBuildFolders()).toEqual(["a", "b", "torn"]);
  await leaveSession("b", 5);
  await provisioner.dropRetained(retained);
  expect(listBuildFolders()).toEqual(["b", "torn"]);
});

test("[TF-29] a run keeps its providers when another run replaces the shared ones", async () => {
  using temp = tempDirectory();
  const [shared, mirror, work] = ["shared", "mirror", "work"].map((name) => join(temp.path, name)) as [
    string,
    string,
    string,
  ];
  const providerFolder = (root: string, name: string): string =>
    join(root, "registry.terraform.io/coder", name, "1.0.0/linux_amd64");
  const createProvider = (folder: string): void => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "provider"), "good");
  };
  const link = (target: string, path: string): void => {
    mkdirSync(join(path, ".."), { recursive: true });
    symlinkSync(target, path);
  };
  // One provider was downloaded into the shared folder. The other is a link there to a mirror on the machine.
  createProvider(providerFolder(shared, "fetched"));
  createProvider(providerFolder(mirror, "mirrored"));
  link(providerFolder(mirror, "mirrored"), providerFolder(shared, "mirrored"));
  const own = join(work, ".terraform/providers");
  for (const name of ["fetched", "mirrored"]) link(providerFolder(shared, name), providerFolder(own, name));
  await detachSharedProviders(work, shared);
  rmSync(shared, { recursive: true });
  for (const name of ["fetched", "mirrored"])
    expect([name, readFileSync(join(providerFolder(own, name), "provider"), "utf8")]).toEqual([name, "good"]);
});
