// A server is killed while it creates, removes and fetches home backups, at each failpoint: the next server completes what was started,
// every listed backup is complete, and nothing is left over.
import { expect } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HOME_BACKUP_FAILPOINTS } from "#base/failpoint.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { HomeBackup, HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Snapshots } from "#schema/workspaces/snapshot.ts";
import { describeTree, makeOddTree } from "#test/support/odd-tree.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace } from "#test/support/workspaces.ts";
import { ServerSlot } from "./server.ts";
import { signInAdmin } from "./server-world.ts";

const test = testSingleServer("needsLocalServerProcess");

const TEMPLATE = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";

test("[HB-9] killed at each failpoint, a server completes its home backup work, and leaves nothing behind", async () => {
  await using place = await ServerSlot.make();
  using depot = tempDirectory();
  const settings = { SLIPWAY_HOME_BACKUP_DIR: depot.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" };
  let server = await place.start({ env: settings });
  const { admin } = await signInAdmin(place);
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  await awaitBuild(admin, id);
  await createBuild(admin, id, "stop");
  await awaitBuild(admin, id);
  const home = join(place.directory, "workspaces", id, "home");
  makeOddTree(home, 1_000_000);
  const backupsPath = `/api/v2/workspaces/${id}/home-backups`;
  const listSnapshots = async () => (await admin.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`)).snapshots;
  const awaitBackups = (): Promise<HomeBackup[]> =>
    until(
      async () => {
        const { backups } = await admin.get<HomeBackups>(backupsPath);
        const isQuiet = (await listSnapshots()).every(
          ({ status, reason }) => status === "ready" && reason !== "backup",
        );
        return isQuiet && backups.length === 1 && backups.every(({ status }) => status === "ready") && backups;
      },
      { what: "one backup", timeoutMs: 40_000 },
    );
  await admin.post(backupsPath, {});
  await awaitBackups();
  for (const point of HOME_BACKUP_FAILPOINTS) {
    await place.stop();
    server = await place.start({ env: { ...settings, SLIPWAY_FAILPOINT: point } });
    writeFileSync(join(home, "kept"), point);
    const [newest] = (await admin.get<HomeBackups>(backupsPath)).backups;
    const path = point === "home_backup_fetched" ? (`${backupsPath}/${newest?.id}/fetch` as const) : backupsPath;
    await admin.post(path, {}).catch(() => {});
    expect({ point, signal: (await server.ended).signal }).toEqual({ point, signal: "SIGKILL" });
    await place.start({ env: settings });
    // The new backup replaces the earlier one of the same day.
    const backups = await awaitBackups();
    expect({ point, isNew: backups[0]?.id !== newest?.id }).toEqual({ point, isNew: point !== "home_backup_fetched" });
    const names = readdirSync(depot.path, { recursive: true, encoding: "utf8" });
    expect({ point, listed: readdirSync(join(depot.path, id, "backups")).sort() }).toEqual({
      point,
      listed: backups.map((backup) => backup.id).sort(),
    });
    expect({ point, left: names.filter((name) => name.includes("part")) }).toEqual({ point, left: [] });
    expect(readdirSync(join(place.directory, "workspaces", id)).filter((name) => name.includes("draft"))).toEqual([]);
  }
  // The files that were fetched across a kill equal the files in the backup.
  const [fetched] = await listSnapshots();
  const treeBefore = describeTree(home);
  expect(treeBefore.length).toBeGreaterThan(10);
  rmSync(join(home, "project"), { recursive: true });
  await admin.post<Build>(`/api/v2/workspaces/${id}/snapshots/${fetched?.id}/restore`, {});
  await awaitBuild(admin, id);
  // This file was written after the backup was made.
  const isInBackup = (line: string): boolean => !line.startsWith('["kept"');
  expect(describeTree(home).filter(isInBackup)).toEqual(treeBefore.filter(isInBackup));
  await place.stop();
});
