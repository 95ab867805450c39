// External workers as separate processes. They take and share builds, die, hang and return.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { uuid } from "#base/ids.ts";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { ProvisionerDaemon } from "#schema/templates/provisioner.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { JobLog } from "#schema/workspaces/job.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { parseImport } from "#src/provisioners/external/import-result.ts";
import { toProgramCommand } from "#test/support/program.ts";
import { ADMIN, readAnnouncedUrl, tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { makeKey, startWorker } from "#test/support/worker.ts";
import {
  awaitBuild,
  awaitWorkspace,
  createBuild,
  createWorkspace,
  ECHO,
  openWorld,
  type World,
} from "#test/support/workspaces.ts";

const makeExternalManifest = (echo: Manifest["echo"], tags: Record<string, string> = {}): Manifest => ({
  ...ECHO,
  provisioner: "external",
  external: { provisioner: "echo" },
  echo,
  tags,
});

/** Opens a world with a worker key. Its `start` starts workers with that key. */
const openWorkerWorld = async (options: Parameters<typeof openWorld>[0] = {}) => {
  const world = await openWorld(options);
  const { key } = await makeKey(world.admin);
  const temp = tempDirectory();
  const start = (name: string, workerOptions: Partial<Parameters<typeof startWorker>[0]> = {}) =>
    startWorker({ url: world.server.url, key, name, directory: temp.path, ...workerOptions });
  return {
    ...world,
    key,
    start,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      temp[Symbol.dispose]();
    },
  };
};

const waitUntilRunningAt = (client: Client, id: string, worker: string): Promise<Workspace> =>
  awaitWorkspace(client, id, ({ latest_build: { job } }) => job.status === "running" && job.worker_name === worker);

const loadLog = async (client: Client, build: string): Promise<string[]> =>
  (await client.get<JobLog[]>(`/api/v2/workspacebuilds/${build}/logs`)).map(({ output }) => output);

/** Waits until the build's log has contained the line `times` times. */
const awaitLine = async (client: Client, build: string, line: string, times = 1): Promise<void> => {
  using socket = await client.socket(`/api/v2/workspacebuilds/${build}/logs?follow=true`);
  for (let count = 0; count < times; ) if ((await socket.json<JobLog>()).output === line) count += 1;
};

const cancelBuild = (client: Client, build: string) => client.patch(`/api/v2/workspacebuilds/${build}/cancel`);

const listDaemons = (world: World): Promise<ProvisionerDaemon[]> =>
  world.admin.get<ProvisionerDaemon[]>("/api/v2/organizations/default/provisionerdaemons");

test("[PV-8] a build without a matching worker waits and logs this; a matching worker that connects runs it", async () => {
  await using world = await openWorkerWorld();
  const { id: template_id } = await makeTemplate(
    world.admin,
    JSON.stringify(makeExternalManifest({ logs: ["made far away"] }, { region: "eu" })),
  );
  const { id, latest_build } = await createWorkspace(world.admin, template_id);
  expect(latest_build).toMatchObject({ status: "pending", matched_provisioners: { count: 0 } });
  expect(latest_build.job).toMatchObject({ queue_position: 0, available_workers: [] });

  await using unmatched = world.start("us-1", { tags: { region: "us" } });
  await unmatched.connected();
  expect((await world.admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`)).status).toBe("pending");

  await using matching = world.start("eu-1", { tags: { region: "eu", gpu: "yes" } });
  await matching.connected();
  const { latest_build: done } = await awaitBuild(world.admin, id);
  expect(done).toMatchObject({ status: "running", matched_provisioners: { count: 1, available: 1 } });
  expect(done.job.worker_name).toBe("eu-1");
  expect(await loadLog(world.admin, done.id)).toEqual([
    "No worker with the tags region=eu, provisioner=echo is connected; the build waits for one.",
    "made far away",
  ]);
  const daemons = await listDaemons(world);
  expect(daemons.map(({ name, status }) => [name, status]).sort()).toEqual([
    ["eu-1", "idle"],
    ["us-1", "idle"],
  ]);
  expect(done.job.worker_id).toBe(daemons.find(({ name }) => name === "eu-1")?.id as string);
});

test("[PV-10] [AD-1] another worker takes over the build of a killed worker", async () => {
  await using world = await openWorkerWorld();
  const { id: template_id } = await makeTemplate(
    world.admin,
    JSON.stringify(makeExternalManifest({ logs: ["begun"], hang: true })),
  );
  await using first = world.start("first");
  await first.connected();
  const { id } = await createWorkspace(world.admin, template_id);
  const before = await waitUntilRunningAt(world.admin, id, "first");
  await using second = world.start("second");
  await second.connected();
  await awaitLine(world.admin, before.latest_build.id, "begun");
  first.signal("SIGKILL");
  const after = await waitUntilRunningAt(world.admin, id, "second");
  expect(after.latest_build.id).toBe(before.latest_build.id);
  const statuses = Object.fromEntries((await listDaemons(world)).map(({ name, status }) => [name, status]));
  expect(statuses).toEqual({ first: "offline", second: "busy" });
  const currentJob = (await listDaemons(world)).find(({ name }) => name === "second")?.current_job;
  expect(currentJob).toMatchObject({
    id: after.latest_build.job.id,
    type: "workspace_build",
    workspace_id: id,
    workspace_name: after.name,
    template_name: after.template_name,
  });
  await awaitLine(world.admin, after.latest_build.id, "begun", 2);
  await awaitLine(world.admin, after.latest_build.id, "begun", 2);
  await cancelBuild(world.admin, after.latest_build.id);
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.status).toBe("canceled");
  expect(await loadLog(world.admin, latest_build.id)).toContain("The worker first was lost: its connection has ended.");
  expect((await listDaemons(world)).find(({ name }) => name === "second")?.status).toBe("idle");
});

test("[PV-10] a worker that stops cleanly returns its build and exits 0", async () => {
  await using world = await openWorkerWorld();
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify(makeExternalManifest({ hang: true })));
  await using first = world.start("first");
  await first.connected();
  const { id, latest_build } = await createWorkspace(world.admin, template_id);
  await waitUntilRunningAt(world.admin, id, "first");
  first.signal("SIGTERM");
  expect(await first.exited).toBe(0);
  await awaitWorkspace(world.admin, id, ({ latest_build: { job } }) => job.status === "pending");
  await using second = world.start("second");
  await second.connected();
  await waitUntilRunningAt(world.admin, id, "second");
  await cancelBuild(world.admin, latest_build.id);
  expect((await awaitBuild(world.admin, id)).latest_build.status).toBe("canceled");
});

test("[PV-8] two workers share the load, run at most one build per slot, and take the oldest build first", async () => {
  await using world = await openWorkerWorld();
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify(makeExternalManifest({ hang: true })));
  await using firstWorker = world.start("one", { slots: 1 });
  await using secondWorker = world.start("two", { slots: 1 });
  await Promise.all([firstWorker.connected(), secondWorker.connected()]);
  const created: Workspace[] = [];
  for (const name of ["a", "b", "c", "d"]) created.push(await createWorkspace(world.admin, template_id, name));
  const getJob = async ({ latest_build }: Workspace) =>
    (await world.admin.get<Build>(`/api/v2/workspacebuilds/${latest_build.id}`)).job;
  const [a, b, c, d] = created as [Workspace, Workspace, Workspace, Workspace];
  await Promise.all(
    [a, b].map(({ id }) =>
      awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.job.status === "running"),
    ),
  );
  expect([(await getJob(a)).worker_name, (await getJob(b)).worker_name].sort()).toEqual(["one", "two"]);
  expect(await getJob(c)).toMatchObject({ status: "pending", queue_position: 1, queue_size: 2 });
  expect(await getJob(d)).toMatchObject({ status: "pending", queue_position: 2 });
  const freedWorker = (await getJob(b)).worker_name;
  await cancelBuild(world.admin, b.latest_build.id);
  await waitUntilRunningAt(world.admin, c.id, freedWorker);
  expect((await getJob(d)).status).toBe("pending");
  for (const { latest_build } of [a, c, d]) await cancelBuild(world.admin, latest_build.id);
});

/** Starts a server as a separate process, which a test can kill. */
const startServer = async (directory: string, port = "0") => {
  const child = Bun.spawn([...toProgramCommand(), "serve"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: directory,
      SLIPWAY_DATA_DIR: join(directory, "data"),
      SLIPWAY_ADDRESS: `127.0.0.1:${port}`,
      SLIPWAY_ADMIN_EMAIL: ADMIN.email,
      SLIPWAY_ADMIN_USERNAME: ADMIN.username,
      SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
    },
    stdout: "pipe",
    stderr: "ignore",
  });
  return { child, url: await readAnnouncedUrl(child.stdout) };
};

test("[PV-11] after a kill during a build, a restarted server assigns the build again, and the worker reconnects automatically", async () => {
  using directory = tempDirectory();
  using temp = tempDirectory();
  const { child: first, url } = await startServer(directory.path);
  const before = await new Client(url).signIn(ADMIN.email, ADMIN.password);
  const { key } = await makeKey(before);
  const template = await makeTemplate(before, JSON.stringify(makeExternalManifest({ logs: ["begun"], hang: true })));
  await using worker = startWorker({ url, key, name: "steady", directory: temp.path });
  await worker.connected();
  const { id, latest_build } = await createWorkspace(before, template.id);
  await awaitLine(before, latest_build.id, "begun");
  first.kill("SIGKILL");
  await first.exited;

  const { child: second } = await startServer(directory.path, url.port);
  try {
    const newClient = before.withToken(before.token);
    await worker.connected(2);
    await awaitLine(newClient, latest_build.id, "begun", 2);
    await waitUntilRunningAt(newClient, id, "steady");
    await cancelBuild(newClient, latest_build.id);
    expect((await awaitBuild(newClient, id)).latest_build.status).toBe("canceled");
  } finally {
    second.kill("SIGKILL");
    await second.exited;
  }
});

test("[PV-13] the server refuses a wrong key, and the worker retries without printing it", async () => {
  await using world = await openWorkerWorld();
  const wrongKey = `${world.key.slice(0, -1)}${world.key.endsWith("x") ? "y" : "x"}`;
  await using worker = world.start("stranger", { key: wrongKey });
  while (!worker.errors().includes("401")) await worker.wrote();
  expect(await listDaemons(world)).toEqual([]);
  worker.signal("SIGTERM");
  expect(await worker.exited).toBe(0);
  expect(worker.errors()).not.toContain(wrongKey);
});

test("[PV-9] a workspace stays where its worker created it; later builds wait for a worker there, and a delete runs there", async () => {
  await using world = await openWorkerWorld();
  using otherFolder = tempDirectory();
  const local: Manifest = {
    provisioner: "external",
    external: { provisioner: "local" },
    resources: [{ name: "main", agents: [{ name: "dev" }] }],
  };
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify(local));
  const first = world.start("here", { kinds: "local" });
  await first.connected();
  const { id } = await createWorkspace(world.admin, template_id);
  const started = await awaitBuild(world.admin, id);
  expect([started.latest_build.status, started.latest_build.job.error]).toEqual(["running", undefined]);
  await awaitWorkspace(world.admin, id, ({ latest_build }) =>
    latest_build.resources.some(({ agents }) => agents?.some(({ status }) => status === "connected")),
  );
  first.signal("SIGTERM");
  await first.exited;
  // The workspace outlives the worker process. A worker in another folder cannot run its builds.
  await using distant = world.start("other", { kinds: "local", directory: otherFolder.path });
  await distant.connected();
  const stop = await createBuild(world.admin, id, "stop");
  expect(stop).toMatchObject({ status: "pending", matched_provisioners: { count: 0 } });
  using log = await world.admin.socket(`/api/v2/workspacebuilds/${stop.id}/logs?follow=true`);
  expect((await log.json<JobLog>()).output).toContain("provisioner=local where the workspace lives");
  await using returned = world.start("back", { kinds: "local" });
  await returned.connected();
  expect((await awaitBuild(world.admin, id)).latest_build).toMatchObject({
    status: "stopped",
    job: { worker_name: "back" },
  });
  await createBuild(world.admin, id, "delete");
  await awaitWorkspace(world.admin, id, ({ latest_build }) => latest_build.status === "deleted");
});

test("[PV-14] the worker's output and the build log contain neither agent tokens nor the worker key", async () => {
  await using world = await openWorkerWorld();
  const token = "6f1c9f0a-1111-4222-8333-444455556677";
  const manifest = makeExternalManifest({ logs: ["quiet"] });
  const resources = [{ name: "main", agents: [{ name: "dev", token }] }];
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify({ ...manifest, resources }));
  await using worker = world.start("quiet");
  await worker.connected();
  const { id } = await createWorkspace(world.admin, template_id);
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.status).toBe("running");
  worker.signal("SIGTERM");
  await worker.exited;
  for (const secret of [token, world.key]) {
    expect(worker.errors()).not.toContain(secret);
    expect((await loadLog(world.admin, latest_build.id)).join("\n")).not.toContain(secret);
  }
});

test("[PV-18] the server ignores a stored file that a worker's import names as its modules", () => {
  const terraform = {
    program: "terraform",
    version: "1.9.0",
    is_dynamic: false,
    has_external_agent: false,
    has_snapshot_module: true,
    needs: [],
    names: [],
    targets: [],
    workspace_tags: {},
  };
  const manifest = {
    provisioner: "terraform",
    parameters: [],
    variables: [],
    presets: [],
    external_auth: [],
    ai_task: false,
    resources: [],
    stop_resources: [],
    terraform,
  };
  const hostile = { ...manifest, terraform: { ...terraform, cache_file: uuid() }, repository: {}, worker: "x" };
  const parsed = parseImport(JSON.stringify({ manifest: hostile, cache: null }));
  expect(JSON.stringify(parsed)).toBe(JSON.stringify({ manifest }));
});
