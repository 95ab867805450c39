// Leftovers of earlier runs in the provisioner's folders, at server startup.
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

test("[TF-27] a start removes plugins unused for 30 days, folders of imports and of old forms, and never the folder of a build", async () => {
  using temp = tempDirectory();
  const root = temp.path;
  const clock = new ManualClock(Date.now());
  const old = (path: string, days: number): string => {
    const folder = join(root, path);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "file"), "");
    const at = new Date(clock.now() - days * DAY_MS);
    utimesSync(folder, at, at);
    return folder;
  };
  const used = old("plugins/registry.terraform.io/coder/coder/2.19.0/linux_amd64", 29);
  const unused = old("plugins/registry.terraform.io/coder/coder/2.18.0/linux_amd64", 31);
  const [left, recent, forgotten] = [old("imports/a", 0), old("forms/a", 6), old("forms/b", 8)];
  const question = old("forms/a/run-1", 0);
  const build = old("builds/c", 400);
  const settings = { binary: undefined, cliConfig: undefined, pass: [], applyLimit: 60_000, formLimit: 10_000 };
  await new TerraformProvisioner({ root, clock, env: {}, ...settings }).prepare();
  const stay = [used, recent, build];
  expect([...stay, unused, left, forgotten, question].filter((one) => existsSync(one))).toEqual(stay);
});

test("[TF-37] removes a build's kept state once it is stored, unless a newer one was left in the meantime or it cannot be read", async () => {
  using temp = tempDirectory();
  const settings = { binary: undefined, cliConfig: undefined, pass: [], applyLimit: 60_000, formLimit: 10_000 };
  const one = new TerraformProvisioner({ root: temp.path, clock: new ManualClock(0), env: {}, ...settings });
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
  const torn = await leaveSession("torn", 1);
  writeFileSync(join(torn.work, "terraform.tfstate"), '{"version": 4, "lin');
  const kept = await one.listRetained();
  expect(kept.toSorted((a, b) => a.serial - b.serial)).toEqual([
    { workspace_id: "a", lineage: "l", serial: 3 },
    { workspace_id: "b", lineage: "l", serial: 4 },
  ]);
  expect(listBuildFolders()).toEqual(["a", "b", "torn"]);
  await leaveSession("b", 5);
  await one.dropRetained(kept);
  expect(listBuildFolders()).toEqual(["b", "torn"]);
});

test("[TF-29] a run keeps its providers when another run replaces the shared ones", async () => {
  using temp = tempDirectory();
  const [shared, mirror, work] = ["shared", "mirror", "work"].map((one) => join(temp.path, one)) as [
    string,
    string,
    string,
  ];
  const at = (root: string, name: string): string =>
    join(root, "registry.terraform.io/coder", name, "1.0.0/linux_amd64");
  const make = (folder: string): void => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "provider"), "good");
  };
  const link = (target: string, path: string): void => {
    mkdirSync(join(path, ".."), { recursive: true });
    symlinkSync(target, path);
  };
  // One was downloaded into the shared folder, the other is a link there to a mirror of the machine.
  make(at(shared, "fetched"));
  make(at(mirror, "mirrored"));
  link(at(mirror, "mirrored"), at(shared, "mirrored"));
  const own = join(work, ".terraform/providers");
  for (const name of ["fetched", "mirrored"]) link(at(shared, name), at(own, name));
  await detachSharedProviders(work, shared);
  rmSync(shared, { recursive: true });
  for (const name of ["fetched", "mirrored"])
    expect([name, readFileSync(join(at(own, name), "provider"), "utf8")]).toEqual([name, "good"]);
});
