// Snapshots, home backups, forks and the trash on the command line, with a real local workspace.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import { Client } from "#src/client.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const test = testSingleServer("local");

const LOCAL = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

test("[CV-43][CV-49][HB-13] `slipway snapshots` and `slipway home-backups` create, list, restore and delete, by name or ID prefix", async () => {
  using backupFolder = tempDirectory();
  const settings = { SLIPWAY_HOME_BACKUP_DIR: backupFolder.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" };
  await using world = await openClientWorld({ env: settings });
  await signInAs(world);
  const admin = new Client(world.server.url, readToken(world));
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
  await awaitBuild(admin, id);
  const file = join(world.server.directory, "workspaces", id, "home", "kept");
  const run = (...args: string[]) => world.run(["snapshots", ...args]);
  const runOk = (...args: string[]) => world.runOk(["snapshots", ...args]);
  expect(await runOk("list", "dev")).toBe("No snapshots.\n");
  writeFileSync(file, "first");
  expect(await runOk("create", "dev", "--name", "before")).toMatch(/^Snapshot [0-9a-f]{8} is ready\.\n$/);
  expect(await runOk("list", "dev")).toMatch(/^ID .*\n[0-9a-f]{8} +before +ready +20\S+ +[\d.]+ (?:Ki)?B\n$/);
  writeFileSync(file, "second");
  expect(await run("restore", "dev", "none", "--yes")).toMatchObject({
    code: 1,
    err: expect.stringContaining("dev has no snapshot none. `slipway snapshots list dev` lists them."),
  });
  expect(await run("restore", "dev", "before")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(readFileSync(file, "utf8")).toBe("second");
  expect(await runOk("restore", "dev", "before", "--yes")).toContain("dev is running.");
  expect(readFileSync(file, "utf8")).toBe("first");
  const { snapshots } = JSON.parse(await runOk("list", "dev", "--json")) as Snapshots;
  const [idPrefix = ""] = snapshots.map((snapshot) => snapshot.id.slice(0, 6));
  expect(await run("delete", "dev", idPrefix)).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(await runOk("delete", "dev", idPrefix, "--yes")).toMatch(/is deleted\.\n$/);
  await until(async () => (await runOk("list", "dev")) === "No snapshots.\n");

  const runBackups = (...args: string[]) => world.runOk(["home-backups", ...args]);
  expect(await runBackups("list", "dev")).toBe("No home backups.\n");
  expect(await runBackups("create", "dev")).toMatch(
    /^Backup [0-9a-f]{8} is in .+: [\d.]+ (?:[KM]i)?B, of which [\d.]+ (?:[KM]i)?B new\.\n$/,
  );
  writeFileSync(file, "third");
  expect(await runBackups("list", "dev")).toMatch(/^ID .*\n[0-9a-f]{8} +ready +20\S+ /);
  expect(await runBackups("restore", "dev", "--yes")).toContain("dev is running.");
  expect(readFileSync(file, "utf8")).toBe("first");
  expect(await runOk("list", "dev")).toMatch(/Before the restore/);
  expect(await runBackups("restore", "dev", "--as", "dev-again")).toBe(
    "dev-again is ready. Start it with: slipway start dev-again\n",
  );

  // On another machine, the backup folder and the recovery key are enough.
  const recovery_key = (await runBackups("key", "--data-dir", world.server.directory)).trim();
  expect(recovery_key).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const env = { ...settings, SLIPWAY_HOME_BACKUP_RECOVERY_KEY: recovery_key };
  const runWithRecoveryKey = (...args: string[]) => world.run(["home-backups", ...args], { env });
  expect((await runWithRecoveryKey("search")).out).toMatch(
    /^ID .*\n[0-9a-f]{8} +admin\/dev +20\S+ +\S+ (?:[KM]i)?B +archive\n$/,
  );
  expect(await runWithRecoveryKey("extract", "dev", "restored")).toMatchObject({
    code: 0,
    out: expect.stringContaining("are in restored."),
  });
  expect(readFileSync(join(world.home, "restored", "kept"), "utf8")).toBe("first");
  expect(await runWithRecoveryKey("extract", "dev", "restored")).toMatchObject({
    code: 1,
    err: expect.stringContaining("is not empty"),
  });
  const wrongKey = { ...settings, SLIPWAY_HOME_BACKUP_RECOVERY_KEY: "0".repeat(32) };
  expect(await world.run(["home-backups", "search"], { env: wrongKey })).toMatchObject({
    code: 1,
    err: expect.stringContaining("another recovery key"),
  });
  // A server backup references the home backups.
  const [backupName = ""] = (await world.runOk(["backup", "of-server", "--data-dir", world.server.directory])).split(
    "  ",
  );
  const manifest = JSON.parse(readFileSync(join(world.home, backupName, "manifest.json"), "utf8"));
  expect(manifest.homes).toMatchObject([{ location: backupFolder.path, workspaces: 1, backups: 1 }]);
  const [backup] = (JSON.parse(await runBackups("list", "dev", "--json")) as HomeBackups).backups;
  const backupPrefix = backup?.id.slice(0, 6) ?? "";
  const unconfirmed = await world.run(["home-backups", "delete", "dev", backupPrefix]);
  expect(unconfirmed).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(await runBackups("delete", "dev", backupPrefix, "--yes")).toMatch(/is deleted\.\n$/);
  await until(async () => (await runBackups("list", "dev")) === "No home backups.\n");
});

test("[CV-46] `slipway fork` creates workspaces with copies of the files and reports each result", async () => {
  await using world = await openClientWorld();
  await signInAs(world);
  const admin = new Client(world.server.url, readToken(world));
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
  await awaitBuild(admin, id);
  const keptPath = (workspace: string): string => join(world.server.directory, "workspaces", workspace, "home", "kept");
  writeFileSync(keptPath(id), "of dev");
  expect(await world.runOk(["fork", "dev", "--count", "2"])).toBe(
    "dev-fork is ready. Start it with: slipway start dev-fork\ndev-fork-2 is ready. Start it with: slipway start dev-fork-2\n",
  );
  const fork = JSON.parse(
    await world.runOk(["fork", "dev", "--name", "other", "--start", "--no-chats", "--json"]),
  ) as Fork;
  expect(fork.copies).toMatchObject([{ name: "other", status: "ready", chats: [] }]);
  expect(readFileSync(keptPath(fork.copies[0]?.workspace_id ?? ""), "utf8")).toBe("of dev");
  expect(await world.runOk(["ls", "--json"])).toContain('"running"');
  expect(await world.run(["fork", "dev", "--name", "other"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("other is taken"),
  });
  expect(await world.run(["fork", "dev", "--count", "0"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("from 1 to 100"),
  });
});

test("[CV-44] `slipway trash list` shows a deleted workspace, which is restored by name; `--permanent` skips the trash", async () => {
  await using world = await openClientWorld();
  await signInAs(world);
  const admin = new Client(world.server.url, readToken(world));
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
  await awaitBuild(admin, id);
  const file = join(world.server.directory, "workspaces", id, "home", "kept");
  writeFileSync(file, "mine");
  const runOk = (line: string) => world.runOk(line.split(" "));
  expect(await runOk("trash list")).toBe("The trash is empty.\n");
  await runOk("workspaces delete dev --yes");
  expect(await runOk("trash list")).toMatch(/^WORKSPACE .*\nadmin\/dev +template-\d+ +20\S+ +20\S+ +[\d.]+ [KM]iB\n$/);
  expect(await world.run(["workspaces", "restore", "none"])).toMatchObject({
    code: 1,
    err: expect.stringContaining("No workspace none is in the trash. `slipway trash list` lists deleted workspaces."),
  });
  expect(await runOk("workspaces restore dev --as again")).toContain(
    "again is restored. Start it with: slipway start again",
  );
  expect(readFileSync(file, "utf8")).toBe("mine");
  await runOk("workspaces delete again --yes --permanent");
  expect(await runOk("trash list")).toBe("The trash is empty.\n");
});
