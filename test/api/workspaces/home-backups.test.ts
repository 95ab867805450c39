// Home backups of real local workspaces: backup, restore, schedule, verification and health report.
import { expect } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HealthReport } from "#schema/deployment/health.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Fork } from "#schema/workspaces/fork.ts";
import type { HomeBackup, HomeBackupReport, HomeBackups } from "#schema/workspaces/home-backup.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import type { Client } from "#src/client.ts";
import { describeTree, makeOddTree } from "#test/support/odd-tree.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

const HOUR_MS = 3_600_000;
type Inbox = { readonly notifications: readonly { readonly title: string }[] };

const TEMPLATE = "provisioner: local\nresources: [{name: main, agents: [{name: main}]}]\n";
const toBackupsPath = (id: string): string => `/api/v2/workspaces/${id}/home-backups`;
const listBackups = (client: Client, id: string): Promise<HomeBackups> => client.get<HomeBackups>(toBackupsPath(id));
const loadReport = (client: Client): Promise<HomeBackupReport> => client.get("/api/v2/deployment/backups/homes");

const awaitBackups = (client: Client, id: string, count: number): Promise<HomeBackup[]> =>
  until(
    async () => {
      const { backups } = await listBackups(client, id);
      const { snapshots } = await client.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`);
      const haveEnded =
        backups.length === count && backups.every(({ status }) => status === "ready" || status === "failed");
      return haveEnded && !snapshots.some(({ reason }) => reason === "backup") && backups;
    },
    { what: `${count} backups` },
  );

test("[HB-11][HB-12] people who can change a workspace can create a backup, fetch it as a snapshot, restore it and fork from it", async () => {
  using temp = tempDirectory();
  await using world = await openWorld({
    env: { SLIPWAY_HOME_BACKUP_DIR: temp.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" },
  });
  const { admin, server } = world;
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  await awaitBuild(admin, id);
  await createBuild(admin, id, "stop");
  await awaitBuild(admin, id);
  const home = join(server.directory, "workspaces", id, "home");
  makeOddTree(home);
  const before = describeTree(home);

  const created = await admin.post<HomeBackup>(toBackupsPath(id));
  expect(created).toMatchObject({ status: "creating", workspace_id: id, error: "" });
  expect((await admin.fetch("POST", toBackupsPath(id))).status).toBe(409);
  const [backup] = await awaitBackups(admin, id, 1);
  expect(backup).toMatchObject({ id: created.id, status: "ready", engine: "archive", location: temp.path });
  expect(backup?.bytes).toBeGreaterThan(3_000_000);
  expect(await loadReport(admin)).toMatchObject({
    location: temp.path,
    backups: 1,
    problem: "",
    workspaces: [{ workspace_id: id, problem: "" }],
  });

  const bob = admin.withToken((await seedUser(server, { username: "bob" })).token);
  expect((await bob.fetch("GET", toBackupsPath(id))).status).toBe(404);
  expect((await bob.fetch("GET", "/api/v2/deployment/backups/homes")).status).toBe(403);
  expect((await admin.fetch("POST", `${toBackupsPath(id)}/${crypto.randomUUID()}/fetch`)).status).toBe(404);

  for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true });
  const fetched = await admin.post<Snapshot>(`${toBackupsPath(id)}/${created.id}/fetch`);
  expect(fetched).toMatchObject({ status: "creating", reason: "fetched" });
  expect(fetched.name).toStartWith("Backup of 20");
  await until(async () =>
    (await admin.get<Snapshots>(`/api/v2/workspaces/${id}/snapshots`)).snapshots.find(
      ({ id, status }) => id === fetched.id && status === "ready",
    ),
  );
  await admin.post<Build>(`/api/v2/workspaces/${id}/snapshots/${fetched.id}/restore`, {});
  await awaitBuild(admin, id);
  expect(describeTree(home)).toEqual(before);

  const fork = await admin.post<Fork>(`/api/v2/workspaces/${id}/forks`, {
    names: ["again"],
    home_backup_id: created.id,
  });
  await until(async () => (await admin.get<Fork>(`/api/v2/workspaces/${id}/forks/${fork.id}`)).status === "ready");
  const copy = fork.copies[0]?.workspace_id ?? "";
  expect(describeTree(join(server.directory, "workspaces", copy, "home"))).toEqual(before);

  await admin.delete(`${toBackupsPath(id)}/${created.id}`);
  await awaitBackups(admin, id, 0);
  expect(readdirSync(temp.path)).toEqual([]);
});

test("[HB-4][HB-10][HB-14] the server backs up on schedule and verifies weekly; health reports old and damaged backups, and it replaces them", async () => {
  using temp = tempDirectory();
  const settings = { SLIPWAY_HOME_BACKUP_DIR: temp.path, SLIPWAY_HOME_BACKUP_ENGINE: "archive" };
  await using world = await openWorld({
    env: { SLIPWAY_HOME_BACKUP_INTERVAL: "1d", SLIPWAY_HOME_BACKUP_KEEP_DAILY: "3", ...settings },
  });
  const { admin, server } = world;
  const { store, homeBackups } = getContext(server);
  const ageRows = (table: string, column: string, hours: number): Promise<void> =>
    store.commit([{ sql: `update ${table} set ${column} = ${column} - ${hours * HOUR_MS}`, rows: [[]] }]);
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, TEMPLATE)).id);
  const templateWithoutBackups = await makeTemplate(admin, TEMPLATE, { home_backups: false });
  const withoutBackups = await createWorkspace(admin, templateWithoutBackups.id, "other");
  await awaitBuild(admin, withoutBackups.id);
  await awaitBuild(admin, id);
  const sweep = async (): Promise<void> => {
    homeBackups.sweep();
    await homeBackups.whenIdle();
  };
  await sweep();
  await awaitBackups(admin, id, 1);
  await sweep();
  expect((await listBackups(admin, id)).backups).toHaveLength(1);
  expect((await listBackups(admin, withoutBackups.id)).backups).toEqual([]);

  await createBuild(admin, id, "stop");
  await awaitBuild(admin, id);
  await ageRows("home_backups", "created_at", 49);
  expect((await loadReport(admin)).workspaces).toMatchObject([
    { workspace_id: id, problem: "The last backup is older than twice the interval." },
  ]);
  const health = await admin.get<HealthReport>("/api/v2/debug/health?force=true");
  expect(
    health.findings.find(({ name, severity }) => name === "home backups" && severity === "error")?.detail,
  ).toContain("admin/dev");
  await sweep();
  await awaitBackups(admin, id, 2);
  expect((await loadReport(admin)).workspaces).toMatchObject([{ problem: "" }]);

  // The workspace has not run since the last backup, so no backup is created.
  await ageRows("home_backups", "created_at", 24 * 8);
  await ageRows("jobs", "completed_at", 24 * 8);
  const [newest] = (await listBackups(admin, id)).backups;
  await sweep();
  expect((await listBackups(admin, id)).backups).toHaveLength(2);
  expect((await listBackups(admin, id)).backups[0]?.verified_at).toBeDefined();
  expect(homeBackups.counts).toMatchObject({ made: 2, failed: 0, verified: 1, damaged: 0 });

  const chunks = join(temp.path, id, "chunks");
  for (const name of readdirSync(chunks, { recursive: true, withFileTypes: true })) {
    if (name.isFile()) writeFileSync(join(name.parentPath, name.name), "other bytes");
  }
  await ageRows("home_backups", "verified_at", 24 * 8);
  homeBackups.sweep();
  const newBackups = await until(
    async () => {
      const { backups } = await listBackups(admin, id);
      return backups[0]?.id !== newest?.id && backups.every(({ status }) => status === "ready") && backups;
    },
    { what: "a new backup in place of the damaged one" },
  );
  expect(homeBackups.counts).toMatchObject({ made: 3, damaged: 1 });
  expect(newBackups[0]).toMatchObject({ status: "ready", error: "" });
  expect(newBackups[0]?.added_bytes).toBeGreaterThan(0);
  const { notifications } = await admin.get<Inbox>("/api/v2/notifications/inbox");
  expect(notifications.map(({ title }) => title)).toContain("The backup of admin/dev is damaged");
});
