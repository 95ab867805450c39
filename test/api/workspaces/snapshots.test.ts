// Snapshots of real local workspaces: real files, and a program that writes to a SQLite database while they are copied.
import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Chat } from "#schema/chats/chat.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Snapshot, Snapshots } from "#schema/workspaces/snapshot.ts";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer, testSingleServer } from "#test/support/one-server.ts";
import { makeRepository } from "#test/support/repository.ts";
import { seedUser } from "#test/support/seed.ts";
import { type TestServer, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, awaitWorkspace, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";

const test = testSingleServer("local");

const WRITER = fileURLToPath(new URL("../../support/snapshot-writer.ts", import.meta.url));
const toTemplate = (script = ""): string => `
provisioner: local
resources:
  - name: main
    agents:
      - name: main
        scripts: [{display_name: Work, run_on_start: true, script: "${script}"}]
`;
/** Starts the writer in its own session, like a service, so that nothing stops it. */
const WRITING_TEMPLATE = toTemplate(`setsid ${process.execPath} --no-env-file ${WRITER} > /dev/null 2>&1 & echo $!`);

const toSnapshotsPath = (id: string): string => `/api/v2/workspaces/${id}/snapshots`;
const listSnapshots = (client: Client, id: string): Promise<Snapshots> => client.get<Snapshots>(toSnapshotsPath(id));

/** Creates a snapshot, waits until it is complete, and returns it. */
const createSnapshot = async (client: Client, id: string, body: object = {}): Promise<Snapshot> => {
  const created = await client.post<Snapshot>(toSnapshotsPath(id), body);
  expect(created).toMatchObject({ status: "creating", bytes: 0, error: "" });
  const isEnded = ({ status }: Snapshot): boolean => status !== "creating";
  return until(async () =>
    (await listSnapshots(client, id)).snapshots.filter(isEnded).find((snapshot) => snapshot.id === created.id),
  );
};

const restore = async (client: Client, id: string, snapshot: string): Promise<Build> =>
  client.post<Build>(`${toSnapshotsPath(id)}/${snapshot}/restore`, {});

const countRows = (home: string): number => {
  using database = new Database(join(home, "work", "rows.db"));
  expect(database.query("pragma integrity_check").values()).toEqual([["ok"]]);
  return Number(database.query("select count(*) from rows").values()[0]?.[0]);
};

const emptyFolder = (home: string): void => {
  for (const name of readdirSync(home)) rmSync(join(home, name), { recursive: true, force: true });
};

test("[SN-1][SN-2][SN-3][SN-4] a snapshot of a database that is being written is consistent, and restoring it undoes rm -rf ~", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, WRITING_TEMPLATE)).id);
  await awaitBuild(admin, id);
  const folder = join(server.directory, "workspaces", id);
  const home = join(folder, "home");
  const readLastNumber = (): number =>
    Number(existsSync(join(home, "work", "last")) && readFileSync(join(home, "work", "last")));
  await until(() => readLastNumber() > 50, { what: "the program to write" });
  mkdirSync(join(home, ".config", "deep"), { recursive: true });
  writeFileSync(join(home, ".config", "deep", "settings"), "mine", { mode: 0o640 });
  symlinkSync("deep/settings", join(home, ".config", "link"));

  const before = readLastNumber();
  const snapshot = await createSnapshot(admin, id, { name: "Before the upgrade" });
  expect(snapshot).toMatchObject({ status: "ready", name: "Before the upgrade", reason: "manual", error: "" });
  expect(snapshot.bytes).toBeGreaterThan(1_000);
  const after = readLastNumber();
  await until(() => readLastNumber() > after + 20, { what: "the program to continue" });

  await createBuild(admin, id, "stop");
  await awaitBuild(admin, id);
  emptyFolder(home);
  expect((await restore(admin, id, snapshot.id)).transition).toBe("stop");
  expect((await awaitBuild(admin, id)).latest_build.status).toBe("stopped");
  const rows = countRows(home);
  expect(rows).toBeGreaterThanOrEqual(before);
  expect(rows).toBeLessThanOrEqual(after + 1);
  expect(rows - readLastNumber()).toBeOneOf([0, 1]);
  expect(readFileSync(join(home, ".config", "link"), "utf8")).toBe("mine");

  // A restore stops a running workspace and starts it again.
  await createBuild(admin, id, "start");
  await awaitBuild(admin, id);
  await until(() => readLastNumber() > rows + 20, { what: "the program to write again" });
  emptyFolder(home);
  await restore(admin, id, snapshot.id);
  await awaitWorkspace(
    admin,
    id,
    ({ latest_build }) => latest_build.build_number === 6 && latest_build.status === "running",
  );
  expect(readFileSync(join(home, ".config", "deep", "settings"), "utf8")).toBe("mine");
  expect(readdirSync(folder).filter((name) => name.includes("draft") || name.includes("replaced"))).toEqual([]);
  expect(readdirSync(join(folder, "snapshots"))).toEqual([snapshot.id]);

  await admin.delete(`${toSnapshotsPath(id)}/${snapshot.id}`);
  await until(async () => (await listSnapshots(admin, id)).snapshots.length === 0, {
    what: "the deletion of the snapshot",
  });
  expect(readdirSync(join(folder, "snapshots"))).toEqual([]);
  expect((await admin.fetch("POST", `${toSnapshotsPath(id)}/${snapshot.id}/restore`)).status).toBe(404);
});

test("[SN-2][SN-24] restoring a snapshot undoes a chat's rm -rf ~ && git push --force", async () => {
  const models = new ScriptedModels();
  await using world = await openWorld({ models });
  const { admin, server } = world;
  using remotes = tempDirectory();
  const remote = join(remotes.path, "shop.git");
  const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, toTemplate("true"))).id);
  await awaitBuild(admin, id);
  const home = join(server.directory, "workspaces", id, "home");
  const shop = makeRepository(join(home, "shop"));
  shop.git("init", "-q", "--bare", remote);
  shop.git("remote", "add", "origin", remote);
  shop.git("push", "-q", "-u", "origin", "main");
  const listCommits = (): string => shop.git("log", "--format=%s %H", "origin/main");
  const before = listCommits();
  writeFileSync(join(shop.root, "notes"), "not committed\n");
  const snapshot = await createSnapshot(admin, id, { name: "Before the chat" });

  const chat = await createChat({ owner: admin, organization_id }, "clean up", { workspace_id: id });
  const author = "-c user.name=a -c user.email=a@example.com";
  const command = `cd ~/shop && git ${author} commit -q --amend -m gone && git push -q --force && rm -rf ~; ls -A ~ 2>&1`;
  (await models.next()).callTool("c", "execute", { command, timeout: "30s" }).finish("tool_calls");
  (await models.next()).finish();
  await until(async () => (await admin.get<Chat>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  expect(existsSync(shop.root)).toBe(false);

  await restore(admin, id, snapshot.id);
  await awaitWorkspace(
    admin,
    id,
    ({ latest_build }) => latest_build.transition === "start" && latest_build.status === "running",
  );
  expect(readFileSync(join(shop.root, "notes"), "utf8")).toBe("not committed\n");
  expect([listCommits(), shop.git("status", "--short")]).toEqual([before, "?? notes\n"]);
  // The remote is not part of the workspace; the clone's own data restores it.
  shop.git("push", "-q", "--force", "origin", "main");
  shop.git("fetch", "-q", "origin");
  expect(listCommits()).toBe(before);
});

test("[SN-5][SN-6] stops create snapshots, of which the template keeps the newest; all are deleted with the workspace", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const created = await makeTemplate(admin, toTemplate("true"), { snapshots_on_stop: 2 });
  const { id } = await createWorkspace(admin, created.id);
  await awaitBuild(admin, id);
  const folder = join(server.directory, "workspaces", id);
  const manual = await createSnapshot(admin, id);
  const awaitReady = async (): Promise<Snapshot[]> =>
    until(async () => {
      const { snapshots } = await listSnapshots(admin, id);
      return snapshots.every(({ status }) => status === "ready") && snapshots;
    });
  for (let round = 0; round < 3; round++) {
    writeFileSync(join(folder, "home", "round"), String(round));
    await createBuild(admin, id, "stop");
    await awaitBuild(admin, id);
    const snapshots = await awaitReady();
    expect(snapshots.filter(({ reason }) => reason === "stop")).toHaveLength(Math.min(round + 1, 2));
    await createBuild(admin, id, "start");
    await awaitBuild(admin, id);
  }
  const finalSnapshots = await awaitReady();
  expect(finalSnapshots).toHaveLength(3);
  expect(finalSnapshots.at(-1)?.id).toBe(manual.id);
  // The older of the two is from the second round.
  const [newest, older] = finalSnapshots;
  await restore(admin, id, older?.id ?? "");
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "running");
  expect(readFileSync(join(folder, "home", "round"), "utf8")).toBe("1");
  expect(newest?.created_by).toBe(manual.created_by);

  await createBuild(admin, id, "delete", { permanent: true });
  await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "deleted");
  expect(existsSync(folder)).toBe(false);
  expect((await admin.fetch("GET", toSnapshotsPath(id))).status).toBe(410);
});

test("[SN-7] a workspace without files shows why it cannot have snapshots, and requesting one returns 400", async () => {
  await using world = await openWorld();
  const { admin } = world;
  const echo = "provisioner: echo\nresources: [{name: a, agents: [{name: main}]}]\n";
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, echo)).id);
  await awaitBuild(admin, id);
  const { unsupported } = await listSnapshots(admin, id);
  expect(unsupported).toContain("not available for this template");
  const response = await admin.fetch("POST", toSnapshotsPath(id), {});
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ message: unsupported });
});

/** Delays copies of local homes until the returned function is called. */
const holdCopies = ({ context }: TestServer): (() => void) => {
  const homes = context?.provisioners.get("local")?.homes;
  if (!homes) throw new Error("the server does not run in this process");
  const { promise, resolve } = Promise.withResolvers<void>();
  const capture = homes.capture.bind(homes);
  homes.capture = (...args) => promise.then(() => capture(...args));
  return resolve;
};

test("[SN-13] snapshots and builds exclude each other, snapshots require permission, and the audit log has each action", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const { id } = await createWorkspace(admin, (await makeTemplate(admin, toTemplate("true"))).id);
  const earlyResponse = await admin.fetch("POST", toSnapshotsPath(id), {});
  expect([earlyResponse.status, (await earlyResponse.json()) as object]).toMatchObject([
    409,
    { message: "A build of the workspace is active. Try again when it has ended." },
  ]);
  await awaitBuild(admin, id);
  const release = holdCopies(server);
  const firstResponse = await admin.fetch("POST", toSnapshotsPath(id), { name: "one" });
  const secondResponse = await admin.fetch("POST", toSnapshotsPath(id), { name: "two" });
  const stopResponse = await admin.fetch("POST", `/api/v2/workspaces/${id}/builds`, { transition: "stop" });
  expect([firstResponse.status, secondResponse.status, stopResponse.status]).toEqual([201, 409, 409]);
  release();
  const created = (await firstResponse.json()) as Snapshot;
  await until(async () => (await listSnapshots(admin, id)).snapshots[0]?.status === "ready");
  const outsider = await seedUser(server, {
    organization_id: (await admin.get<{ organization_id: string }>(`/api/v2/workspaces/${id}`)).organization_id,
  });
  const outsiderClient = new Client(server.url, outsider.token);
  expect((await outsiderClient.fetch("GET", toSnapshotsPath(id))).status).toBe(404);
  expect((await outsiderClient.fetch("POST", `${toSnapshotsPath(id)}/${created.id}/restore`)).status).toBe(404);
  const otherWorkspace = await createWorkspace(admin, (await makeTemplate(admin, toTemplate("true"))).id, "elsewhere");
  await awaitBuild(admin, otherWorkspace.id);
  expect((await admin.fetch("DELETE", `${toSnapshotsPath(otherWorkspace.id)}/${created.id}`)).status).toBe(404);
  expect((await admin.fetch("POST", `${toSnapshotsPath(otherWorkspace.id)}/${created.id}/restore`)).status).toBe(404);
  await restore(admin, id, created.id);
  expect((await admin.fetch("DELETE", `${toSnapshotsPath(id)}/${created.id}`)).status).toBe(409);
  await awaitWorkspace(
    admin,
    id,
    ({ latest_build }) => latest_build.build_number === 3 && latest_build.status === "running",
  );
  await admin.delete(`${toSnapshotsPath(id)}/${created.id}`);
  const { audit_logs } = await admin.get<{
    audit_logs: { action: string; resource_id: string; status_code: number }[];
  }>(`/api/v2/audit?limit=20&q=${encodeURIComponent("resource_type:workspace_snapshot")}`);
  const entries = audit_logs.filter((entry) => entry.resource_id === created.id);
  expect(entries.map(({ action, status_code }) => `${action} ${status_code}`)).toEqual([
    ...["delete 204", "delete 409", "write 201", "write 404", "create 201"],
  ]);
});

testNeeding(
  [needs.root, requireSingleServer("local")],
  "[SN-8] a snapshot keeps the separate user as owner of the home, but that user cannot access the snapshot",
  async () => {
    await using world = await openWorld({ env: { SLIPWAY_LOCAL_WORKSPACE_USER: "nobody" } });
    const { admin, server } = world;
    const script = `echo mine > ~/own; sleep 0.1`;
    const { id } = await createWorkspace(admin, (await makeTemplate(admin, toTemplate(script))).id);
    await awaitWorkspace(
      admin,
      id,
      ({ latest_build }) => latest_build.resources[0]?.agents?.[0]?.lifecycle_state === "ready",
    );
    const folder = join(server.directory, "workspaces", id);
    const snapshot = await createSnapshot(admin, id);
    expect(snapshot).toMatchObject({ status: "ready", error: "" });
    const runAsNobody = (...command: string[]): number =>
      Bun.spawnSync(command, { uid: 65534, gid: 65534, stdio: ["ignore", "ignore", "ignore"] }).exitCode;
    expect(runAsNobody("cat", join(folder, "home", "own"))).toBe(0);
    expect(runAsNobody("ls", join(folder, "snapshots", snapshot.id))).not.toBe(0);
    expect(runAsNobody("ls", join(folder, "snapshots"))).not.toBe(0);
    emptyFolder(join(folder, "home"));
    await restore(admin, id, snapshot.id);
    await awaitWorkspace(admin, id, ({ latest_build }) => latest_build.status === "running");
    expect(runAsNobody("cat", join(folder, "home", "own"))).toBe(0);
  },
);
