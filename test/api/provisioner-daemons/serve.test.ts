// The protocol between worker and server, with a worker that the test controls.
import { expect, test } from "bun:test";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { ProvisionerDaemon } from "#schema/templates/provisioner.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Client } from "#src/client.ts";
import { printTags } from "#src/provisioners/external/tags.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { type JobMessage, makeKey, openWorker, startWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

const EXTERNAL: Manifest = { ...ECHO, provisioner: "external", external: { provisioner: "echo" } };

const openWorkerWorld = async (manifest: Manifest = EXTERNAL, clock?: ManualClock) => {
  const world = await openWorld(clock ? { clock } : {});
  const { key } = await makeKey(world.admin);
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify(manifest));
  const connectWorker = (name: string, query: Record<string, string> = {}) =>
    openWorker(world.server.url, key, { name, ...query });
  return { ...world, key, template_id, connectWorker };
};

type Worker = Awaited<ReturnType<typeof openWorker>>;

/** Returns the next message of this kind and skips others. */
const nextMessage = async ({ socket }: Worker, type: string): Promise<JobMessage> => {
  for (;;) {
    const message = await socket.json<JobMessage>();
    if (message.type === type) return message;
  }
};

const getBuild = (client: Client, id: string): Promise<Build> => client.get<Build>(`/api/v2/workspacebuilds/${id}`);

test("[PV-12] applies a worker's reports about its own job to the build, and ignores others", async () => {
  await using world = await openWorkerWorld();
  const worker = await world.connectWorker("raw");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(worker, "job");
  const { job_id } = request;
  const lines = [{ level: "info", stage: "Far away", output: "one" }];
  worker.say({ type: "log", job_id: "another", lines: [{ ...lines[0], output: "of another" }] });
  worker.say({ type: "failed", job_id: "another", error: "not mine", code: "" });
  worker.say({ type: "log", job_id, lines });
  const timing = { action: "make", resource: "r", source: "s", stage: "apply", started_at: 1000, ended_at: 2000 };
  worker.say({ type: "timing", job_id, timing });
  worker.say({ type: "done", job_id, state: "left" });
  worker.say({ type: "done", job_id, state: "twice" });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.status).toBe("running");
  const logs = await world.admin.get<{ output: string; log_source: string }[]>(
    `/api/v2/workspacebuilds/${latest_build.id}/logs`,
  );
  expect(logs.map(({ output, log_source }) => [output, log_source])).toEqual([["one", "provisioner"]]);
  const timings = await world.admin.get<{ provisioner_timings: { action: string }[] }>(
    `/api/v2/workspacebuilds/${latest_build.id}/timings`,
  );
  expect(timings.provisioner_timings.map(({ action }) => action)).toEqual(["make"]);
  worker.socket[Symbol.dispose]();
});

test("[PV-12] a worker's failure fails the build; an invalid message closes the connection", async () => {
  await using world = await openWorkerWorld();
  const worker = await world.connectWorker("raw");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(worker, "job");
  worker.say({ type: "failed", job_id: request.job_id, error: "no machine is free", code: "INSUFFICIENT_QUOTA" });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.job).toMatchObject({ error: "no machine is free", error_code: "INSUFFICIENT_QUOTA" });
  for (const message of [
    "no json",
    "{}",
    '{"type":"log","job_id":"x","lines":[{}]}',
    '{"type":"done","job_id":"x"}',
    '{"type":"fetch","job_id":"x","file":"archive","offset":1e300}',
    '{"type":"timing","job_id":"x","timing":{"action":"","resource":"","source":"","stage":"","started_at":1e300,"ended_at":0}}',
  ]) {
    const badWorker = await world.connectWorker("bad");
    badWorker.socket.send(message);
    expect(await badWorker.socket.closed).toMatchObject({ code: 1002, reason: "invalid message" });
  }
  worker.socket[Symbol.dispose]();
});

test("[PV-11] disconnects a silent worker after 15 seconds, and gives its build to another with new tokens", async () => {
  const clock = new ManualClock();
  await using world = await openWorkerWorld(EXTERNAL, clock);
  const silentWorker = await world.connectWorker("silent");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const first = await nextMessage(silentWorker, "job");
  const activeWorker = await world.connectWorker("lively");
  for (let seconds = 0; seconds < 15; seconds += 5) {
    clock.advance(5_000);
    if (seconds >= 10) break;
    activeWorker.say({ type: "alive" });
    await nextMessage(activeWorker, "alive");
  }
  expect(await silentWorker.socket.closed).toMatchObject({ code: 1008, reason: "nothing was heard of you" });
  const second = await nextMessage(activeWorker, "job");
  expect(second.request.job_id).toBe(first.request.job_id);
  expect(second.request.agents[0]?.token).not.toBe(first.request.agents[0]?.token as string);
  activeWorker.say({ type: "done", job_id: second.request.job_id, state: null });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build).toMatchObject({ status: "running", job: { worker_name: "lively" } });
  activeWorker.socket[Symbol.dispose]();
});

test("[PV-10] a build that has lost three workers fails, and says so", async () => {
  await using world = await openWorkerWorld();
  const { id } = await createWorkspace(world.admin, world.template_id);
  for (const name of ["a", "b", "c"]) {
    const worker = await world.connectWorker(name);
    await nextMessage(worker, "job");
    worker.socket[Symbol.dispose]();
  }
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.job.error).toBe("The worker c was lost: its connection has ended. 3 workers were tried.");
});

test("[PV-12] a second connection with the same name replaces the first, and keeps its build and ID", async () => {
  await using world = await openWorkerWorld();
  const first = await world.connectWorker("twin");
  const { latest_build } = await createWorkspace(world.admin, world.template_id);
  await nextMessage(first, "job");
  const second = await world.connectWorker("Twin");
  expect(second.id).toBe(first.id);
  expect(await first.socket.closed).toMatchObject({ code: 1008, reason: "another worker of this name has connected" });
  const { request } = await nextMessage(second, "job");
  expect((await getBuild(world.admin, latest_build.id)).job).toMatchObject({ id: request.job_id, status: "running" });
  const daemons = await world.admin.get<ProvisionerDaemon[]>("/api/v2/organizations/default/provisionerdaemons");
  expect(daemons.map(({ id, status, current_job }) => [id, status, current_job?.id])).toEqual([
    [first.id, "busy", request.job_id],
  ]);
  second.socket[Symbol.dispose]();
});

test("[PV-8] [PV-12] a worker key with tags gives no other tags, and does not take the name of another key's worker", async () => {
  await using world = await openWorkerWorld({ ...EXTERNAL, tags: { region: "eu" } });
  const { key: euKey } = await makeKey(world.admin, { region: "eu" });
  const { key: devKey } = await makeKey(world.admin, { env: "dev" });
  const refuse = async (query: string) => {
    const headers = { "Service-Session-Token": devKey };
    const url = new URL(`/api/v2/organizations/default/provisionerdaemons/serve?${query}`, world.server.url);
    const response = await fetch(url, { headers });
    return { status: response.status, ...((await response.json()) as { message: string; validations?: unknown }) };
  };
  const honest = await openWorker(world.server.url, euKey, { name: "eu-1", tags: "region=eu" });
  expect(await refuse("name=dev-1&tags=env%3Ddev%2Cregion%3Deu")).toMatchObject({
    status: 400,
    validations: [{ field: "tags", detail: expect.stringContaining("which has env=dev, and not region") }],
  });
  expect(await refuse("name=EU-1")).toMatchObject({
    status: 409,
    message: "A connected worker with another key has this name.",
  });
  await expect(openWorker(world.server.url, devKey, { name: "eu-1" })).rejects.toThrow();
  const dev = await openWorker(world.server.url, devKey, { name: "dev-1", tags: "env=dev", slots: "64" });
  await createWorkspace(world.admin, world.template_id);
  await nextMessage(honest, "job");
  const daemons = await world.admin.get<ProvisionerDaemon[]>("/api/v2/organizations/default/provisionerdaemons");
  expect(daemons.map(({ name, status, tags }) => [name, status, tags]).sort()).toEqual([
    ["dev-1", "idle", { env: "dev" }],
    ["eu-1", "busy", { region: "eu" }],
  ]);
  // After the worker has left, another key can have its name.
  honest.socket[Symbol.dispose]();
  await until(async () => (await refuse("name=eu-1")).status === 400);
  const heir = await openWorker(world.server.url, devKey, { name: "eu-1" });
  expect(heir.id).toBe(honest.id);
  for (const { socket } of [dev, heir]) socket[Symbol.dispose]();
});

test("[PV-12] a worker logs why the server refuses it", async () => {
  await using world = await openWorkerWorld();
  const { key } = await makeKey(world.admin, { env: "dev" });
  using directory = tempDirectory();
  const { url } = world.server;
  await using worker = startWorker({ url, key, name: "dev-1", directory: directory.path, tags: { region: "eu" } });
  while (!worker.errors().includes("the server answered 400")) await worker.wrote();
  expect(worker.errors()).toContain("can only name tags of the worker's key, which has env=dev, and not region");
});

test("[PV-11] sends a cancellation to the worker, and disconnects it if the build does not end within a minute", async () => {
  const clock = new ManualClock();
  await using world = await openWorkerWorld(EXTERNAL, clock);
  const goodWorker = await world.connectWorker("good");
  const first = await createWorkspace(world.admin, world.template_id, "first");
  const { request } = await nextMessage(goodWorker, "job");
  await world.admin.patch(`/api/v2/workspacebuilds/${first.latest_build.id}/cancel`);
  expect((await nextMessage(goodWorker, "cancel")).job_id).toBe(request.job_id);
  goodWorker.say({ type: "canceled", job_id: request.job_id });
  expect((await awaitBuild(world.admin, first.id)).latest_build.status).toBe("canceled");

  const second = await createWorkspace(world.admin, world.template_id, "second");
  await nextMessage(goodWorker, "job");
  await world.admin.patch(`/api/v2/workspacebuilds/${second.latest_build.id}/cancel`);
  await nextMessage(goodWorker, "cancel");
  for (let seconds = 0; seconds < 60; seconds += 5) {
    goodWorker.say({ type: "alive" });
    await nextMessage(goodWorker, "alive");
    clock.advance(5_000);
  }
  expect((await goodWorker.socket.closed).reason).toBe("a canceled build did not end");
  expect((await awaitBuild(world.admin, second.id)).latest_build.status).toBe("canceled");
});

test("[PV-8] a worker gets only builds that match its tags, provisioner and slots; its key's tags win", async () => {
  await using world = await openWorkerWorld({ ...EXTERNAL, tags: { region: "eu" } });
  const { key } = await makeKey(world.admin, { region: "eu" });
  const unmatchedWorkers = [
    await world.connectWorker("untagged"),
    await world.connectWorker("elsewhere", { tags: "region=us" }),
    await world.connectWorker("local-only", { tags: "region=eu", provisioners: "local" }),
  ];
  const { id, latest_build } = await createWorkspace(world.admin, world.template_id);
  expect(latest_build.matched_provisioners).toMatchObject({ count: 0 });
  const matchingWorker = await openWorker(world.server.url, key, { name: "fitting", tags: "region=us" });
  expect((await getBuild(world.admin, latest_build.id)).job.available_workers).toEqual([matchingWorker.id]);
  const { request } = await nextMessage(matchingWorker, "job");
  const waitingWorkspace = await createWorkspace(world.admin, world.template_id, "waiting");
  const getWaitingBuild = () => getBuild(world.admin, waitingWorkspace.latest_build.id);
  // The node with the workers publishes its queue to the others.
  await until(async () => (await getWaitingBuild()).job.queue_position === 1);
  expect((await getWaitingBuild()).job.status).toBe("pending");
  matchingWorker.say({ type: "leaving" });
  matchingWorker.say({ type: "done", job_id: request.job_id, state: null });
  await awaitWorkspace(world.admin, id, (workspace) => workspace.latest_build.status === "running");
  expect((await getBuild(world.admin, waitingWorkspace.latest_build.id)).status).toBe("pending");
  for (const { socket } of [...unmatchedWorkers, matchingWorker]) socket[Symbol.dispose]();
});

test.each([
  ["echo", { region: "eu" }],
  ["docker", { region: "eu" }],
  ["local", { scope: "user", owner: "ada" }],
] as const)(
  "[PV-8] only a matching worker gets the builds of a template with tags and the provisioner %s",
  async (kind, tags) => {
    const manifest: Manifest = {
      provisioner: kind,
      tags,
      resources: [
        {
          name: "main",
          agents: [{ name: "main" }],
          ...(kind === "docker" ? { docker: { image: "debian:13" } } : {}),
        },
      ],
    };
    await using world = await openWorkerWorld(manifest);
    const { latest_build } = await createWorkspace(world.admin, world.template_id);
    expect(latest_build).toMatchObject({ status: "pending", matched_provisioners: { count: 0 } });
    const unmatchedWorkers = [
      await world.connectWorker("untagged", { provisioners: kind }),
      await world.connectWorker("other-kind", {
        tags: printTags(tags),
        provisioners: kind === "echo" ? "docker" : "echo",
      }),
    ];
    const matchingWorker = await world.connectWorker("fitting", { tags: printTags(tags), provisioners: kind });
    const { request } = await nextMessage(matchingWorker, "job");
    expect(request.manifest.provisioner).toBe(kind);
    matchingWorker.say({ type: "done", job_id: request.job_id, state: null });
    expect((await awaitBuild(world.admin, latest_build.workspace_id)).latest_build.status).toBe("running");
    for (const { socket } of [...unmatchedWorkers, matchingWorker]) socket[Symbol.dispose]();
  },
);

test("[PV-12] a worker that sends endless output fills only its build's log", async () => {
  await using world = await openWorkerWorld();
  const worker = await world.connectWorker("talker");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(worker, "job");
  const { job_id } = request;
  const lines = Array.from({ length: 100 }, () => ({ level: "info", stage: "s", output: "x".repeat(1024) }));
  for (let i = 0; i < 40; i++) worker.say({ type: "log", job_id, lines });
  worker.say({ type: "done", job_id, state: null });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build).toMatchObject({ status: "running", job: { logs_overflowed: true } });
  worker.socket[Symbol.dispose]();
});
