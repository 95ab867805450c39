// The protocol between worker and server, with a worker that the test controls.
import { expect, test } from "bun:test";
import type { Manifest } from "#schema/templates/manifest.ts";
import type { ProvisionerDaemon } from "#schema/templates/provisioner.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Client } from "#src/client.ts";
import { printTags } from "#src/provisioners/external/tags.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { type JobMessage, makeKey, openWorker } from "#test/support/worker.ts";
import { awaitBuild, awaitWorkspace, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

const EXTERNAL: Manifest = { ...ECHO, provisioner: "external", external: { provisioner: "echo" } };

const open = async (manifest: Manifest = EXTERNAL, clock?: ManualClock) => {
  const world = await openWorld(clock ? { clock } : {});
  const { key } = await makeKey(world.admin);
  const { id: template_id } = await makeTemplate(world.admin, JSON.stringify(manifest));
  const worker = (name: string, query: Record<string, string> = {}) =>
    openWorker(world.server.url, key, { name, ...query });
  return { ...world, key, template_id, worker };
};

type Raw = Awaited<ReturnType<typeof openWorker>>;

/** Returns the next message of this kind and skips others. */
const nextMessage = async ({ socket }: Raw, type: string): Promise<JobMessage> => {
  for (;;) {
    const message = await socket.json<JobMessage>();
    if (message.type === type) return message;
  }
};

const getBuild = (client: Client, id: string): Promise<Build> => client.get<Build>(`/api/v2/workspacebuilds/${id}`);

test("[PV-12] a worker's reports about its job apply to the build; reports about any other are ignored", async () => {
  await using world = await open();
  const raw = await world.worker("raw");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(raw, "job");
  const { job_id } = request;
  const lines = [{ level: "info", stage: "Far away", output: "one" }];
  raw.say({ type: "log", job_id: "another", lines: [{ ...lines[0], output: "of another" }] });
  raw.say({ type: "failed", job_id: "another", error: "not mine", code: "" });
  raw.say({ type: "log", job_id, lines });
  const timing = { action: "make", resource: "r", source: "s", stage: "apply", started_at: 1000, ended_at: 2000 };
  raw.say({ type: "timing", job_id, timing });
  raw.say({ type: "done", job_id, state: "left" });
  raw.say({ type: "done", job_id, state: "twice" });
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
  raw.socket[Symbol.dispose]();
});

test("[PV-12] a worker's failure fails the build with its message; an invalid message closes the connection", async () => {
  await using world = await open();
  const raw = await world.worker("raw");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(raw, "job");
  raw.say({ type: "failed", job_id: request.job_id, error: "no machine is free", code: "INSUFFICIENT_QUOTA" });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.job).toMatchObject({ error: "no machine is free", error_code: "INSUFFICIENT_QUOTA" });
  for (const message of ["no json", "{}", '{"type":"log","job_id":"x","lines":[{}]}', '{"type":"done","job_id":"x"}']) {
    const badWorker = await world.worker("bad");
    badWorker.socket.send(message);
    expect(await badWorker.socket.closed).toMatchObject({ code: 1002, reason: "invalid message" });
  }
  raw.socket[Symbol.dispose]();
});

test("[PV-11] a silent worker is given up after 15 seconds, and another gets its build with fresh tokens", async () => {
  const clock = new ManualClock();
  await using world = await open(EXTERNAL, clock);
  const silent = await world.worker("silent");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const first = await nextMessage(silent, "job");
  const lively = await world.worker("lively");
  for (let seconds = 0; seconds < 15; seconds += 5) {
    clock.advance(5_000);
    if (seconds >= 10) break;
    lively.say({ type: "alive" });
    await nextMessage(lively, "alive");
  }
  expect(await silent.socket.closed).toMatchObject({ code: 1008, reason: "nothing was heard of you" });
  const second = await nextMessage(lively, "job");
  expect(second.request.job_id).toBe(first.request.job_id);
  expect(second.request.agents[0]?.token).not.toBe(first.request.agents[0]?.token as string);
  lively.say({ type: "done", job_id: second.request.job_id, state: null });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build).toMatchObject({ status: "running", job: { worker_name: "lively" } });
  lively.socket[Symbol.dispose]();
});

test("[PV-10] a build that lost three workers fails with that reason", async () => {
  await using world = await open();
  const { id } = await createWorkspace(world.admin, world.template_id);
  for (const name of ["a", "b", "c"]) {
    const raw = await world.worker(name);
    await nextMessage(raw, "job");
    raw.socket[Symbol.dispose]();
  }
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build.job.error).toBe("The worker c was lost: its connection has ended. 3 workers were tried.");
});

test("[PV-12] a second connection with the same name replaces the first and keeps its build and ID", async () => {
  await using world = await open();
  const first = await world.worker("twin");
  const { latest_build } = await createWorkspace(world.admin, world.template_id);
  await nextMessage(first, "job");
  const second = await world.worker("Twin");
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

test("[PV-11] a cancellation reaches the worker; one that does not end its build within a minute is considered hung", async () => {
  const clock = new ManualClock();
  await using world = await open(EXTERNAL, clock);
  const goodWorker = await world.worker("good");
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

test("[PV-8] a worker takes only builds that match its tags, provisioner and free slots; its key's tags override its own", async () => {
  await using world = await open({ ...EXTERNAL, tags: { region: "eu" } });
  const { key } = await makeKey(world.admin, { region: "eu" });
  const none = [
    await world.worker("untagged"),
    await world.worker("elsewhere", { tags: "region=us" }),
    await world.worker("local-only", { tags: "region=eu", provisioners: "local" }),
  ];
  const { id, latest_build } = await createWorkspace(world.admin, world.template_id);
  expect(latest_build.matched_provisioners).toMatchObject({ count: 0 });
  const fitting = await openWorker(world.server.url, key, { name: "fitting", tags: "region=us" });
  expect((await getBuild(world.admin, latest_build.id)).job.available_workers).toEqual([fitting.id]);
  const { request } = await nextMessage(fitting, "job");
  const waiting = await createWorkspace(world.admin, world.template_id, "waiting");
  const getWaitingBuild = () => getBuild(world.admin, waiting.latest_build.id);
  // The node with the workers publishes its queue to the others.
  await until(async () => (await getWaitingBuild()).job.queue_position === 1);
  expect((await getWaitingBuild()).job.status).toBe("pending");
  fitting.say({ type: "leaving" });
  fitting.say({ type: "done", job_id: request.job_id, state: null });
  await awaitWorkspace(world.admin, id, (workspace) => workspace.latest_build.status === "running");
  expect((await getBuild(world.admin, waiting.latest_build.id)).status).toBe("pending");
  for (const { socket } of [...none, fitting]) socket[Symbol.dispose]();
});

test.each([
  ["echo", { region: "eu" }],
  ["docker", { region: "eu" }],
  ["local", { scope: "user", owner: "ada" }],
] as const)("[PV-8] a worker takes the builds of a template with tags and the provisioner %s", async (kind, tags) => {
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
  await using world = await open(manifest);
  const { latest_build } = await createWorkspace(world.admin, world.template_id);
  expect(latest_build).toMatchObject({ status: "pending", matched_provisioners: { count: 0 } });
  const others = [
    await world.worker("untagged", { provisioners: kind }),
    await world.worker("other-kind", { tags: printTags(tags), provisioners: kind === "echo" ? "docker" : "echo" }),
  ];
  const fitting = await world.worker("fitting", { tags: printTags(tags), provisioners: kind });
  const { request } = await nextMessage(fitting, "job");
  expect(request.manifest.provisioner).toBe(kind);
  fitting.say({ type: "done", job_id: request.job_id, state: null });
  expect((await awaitBuild(world.admin, latest_build.workspace_id)).latest_build.status).toBe("running");
  for (const { socket } of [...others, fitting]) socket[Symbol.dispose]();
});

test("[PV-12] a worker that sends endless output fills its build's log and nothing else", async () => {
  await using world = await open();
  const raw = await world.worker("talker");
  const { id } = await createWorkspace(world.admin, world.template_id);
  const { request } = await nextMessage(raw, "job");
  const { job_id } = request;
  const lines = Array.from({ length: 100 }, () => ({ level: "info", stage: "s", output: "x".repeat(1024) }));
  for (let i = 0; i < 40; i++) raw.say({ type: "log", job_id, lines });
  raw.say({ type: "done", job_id, state: null });
  const { latest_build } = await awaitBuild(world.admin, id);
  expect(latest_build).toMatchObject({ status: "running", job: { logs_overflowed: true } });
  raw.socket[Symbol.dispose]();
});
