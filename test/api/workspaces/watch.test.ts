// Watching a workspace, over server-sent events and over a WebSocket, parsed as strictly as genuine clients do.
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { Value } from "@sinclair/typebox/value";
import { Workspace } from "#schema/workspaces/workspace.ts";
import type { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { getContext, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

const statuses = async (client: Client, id: string, until: string): Promise<{ events: string[]; seen: string[] }> => {
  const abort = new AbortController();
  const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, { signal: abort.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  const events: string[] = [];
  const seen: string[] = [];
  for await (const { event, data } of readEvents<Workspace>(response)) {
    events.push(event);
    if (data) seen.push(data.latest_build.status);
    if (seen.at(-1) === until) break;
  }
  abort.abort();
  return { events, seen };
};

test("[WK-9] [EV-1] the stream starts with a ping and the workspace, and sends it whole after each change, in order", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const stopping = statuses(world.admin, id, "stopped");
  const watching = world.server.context;
  await until(() => !watching || watching.streams.size > 0);
  await createBuild(world.admin, id, "stop");
  const { events, seen } = await stopping;
  expect(events.slice(0, 2)).toEqual(["ping", "data"]);
  expect(seen.at(0)).toBe("running");
  const order = ["running", "pending", "stopping", "stopped"];
  expect(seen.map((status) => order.indexOf(status))).toEqual(
    [...seen.keys()].map((i) => order.indexOf(seen[i] ?? "")),
  );
  expect([...seen].sort((a, b) => order.indexOf(a) - order.indexOf(b))).toEqual(seen);
  expect(new Set(seen).size).toBe(seen.length);
});

test("[WK-10] the WebSocket variant sends ping, then the workspace; a client that sends anything is closed", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  const running = await awaitBuild(world.admin, id);
  using socket = await world.admin.socket(`/api/v2/workspaces/${id}/watch-ws`);
  expect(await socket.json()).toEqual({ type: "ping", data: null });
  expect(await socket.json()).toEqual({ type: "data", data: running });
  expect(Value.Errors(Workspace, running).First()).toBeUndefined();
  socket.send("hello");
  expect((await socket.closed).code).toBe(1008);
});

test("[WK-11] watchers leave nothing behind; a stream ends when its session is revoked", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const { topics, streams } = getContext(world.server);
  const response = await world.admin.fetch("GET", `/api/v2/workspaces/${id}/watch`);
  const events = readEvents(response);
  await events.next();
  topics.publish("key_gone", (world.admin.token ?? "").split("-")[0] ?? "", {});
  let last = await events.next();
  while (!last.done) last = await events.next();
  expect(streams.size).toBe(0);
});

test("[EV-2] a ping is sent every 15 seconds", async () => {
  const clock = new ManualClock();
  await using world = await openWorld({ clock });
  const { template_id } = await seedTemplate(world.server, { ...ECHO, tags: { no: "worker" } });
  const { id } = await createWorkspace(world.admin, template_id);
  const events = readEvents(await world.admin.fetch("GET", `/api/v2/workspaces/${id}/watch`));
  expect([(await events.next()).value?.event, (await events.next()).value?.event]).toEqual(["ping", "data"]);
  clock.advance(15_000);
  expect((await events.next()).value?.event).toBe("ping");
  await events.return(undefined);
});

test("[EV-3] a reader that does not read is disconnected, and its queue is bounded", async () => {
  await using world = await openWorld();
  // With nodes in between, several sockets buffer data.
  const resources = [{ name: "main", agents: [{ name: "dev", env: { PADDING: "x".repeat(32_000) } }] }];
  const { template_id } = await seedTemplate(world.server, { provisioner: "echo", resources });
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const { topics, streams, workspaces, store } = getContext(world.server);
  const { port, hostname } = world.server.url;
  const stalled = connect(Number(port), hostname);
  stalled.pause();
  const head = `GET /api/v2/workspaces/${id}/watch HTTP/1.1\r\nHost: ${hostname}:${port}\r\n`;
  stalled.write(`${head}Service-Session-Token: ${world.admin.token}\r\n\r\n`);
  await until(() => streams.size > 0);
  expect(workspaces.size).toBeGreaterThan(0);
  const touch = "update workspaces set last_used_at = last_used_at + 1 where id = ?";
  let changes = 0;
  while (streams.size > 0 && changes < 5_000) {
    await store.commit([{ sql: touch, rows: [[id]] }]);
    topics.publish("workspace_changed", id, { agent_id: id });
    changes += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(streams.size).toBe(0);
  stalled.destroy();
});

test("[EV-4] event streams are bounded and shared among callers, and one that ends makes room", async () => {
  await using world = await openWorld({ env: { SLIPWAY_MAX_CONNECTIONS: "4" } });
  const { template_id, organization_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  const { streams } = getContext(world.server);
  // A response without a reference is garbage collected, which ends its stream.
  const responses: Response[] = [];
  const watch = async (client: Client) => {
    const leave = new AbortController();
    const options = { signal: leave.signal };
    const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, options);
    responses.push(response);
    return { status: response.status, leave: () => leave.abort() };
  };
  const [second, third] = [
    await seedUser(world.server, { roles: ["owner"], organization_id }),
    await seedUser(world.server, { roles: ["owner"], organization_id }),
  ];
  const other = world.admin.withToken(second.token);
  const another = world.admin.withToken(third.token);
  const head = await world.admin.fetch("HEAD", `/api/v2/workspaces/${id}/watch`);
  expect([head.status, head.headers.get("content-type"), streams.size]).toEqual([200, "text/event-stream", 0]);
  const [first, ...more] = [await watch(world.admin), await watch(world.admin)];
  expect([first, ...more].map((one) => one?.status)).toEqual([200, 200]);
  expect([(await watch(world.admin)).status, (await watch(other)).status]).toEqual([503, 200]);
  expect((await watch(another)).status).toBe(503);
  first?.leave();
  await until(() => streams.size <= 2);
  expect((await watch(another)).status).toBe(200);
  expect(responses.length).toBe(6);
});
