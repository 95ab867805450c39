// Watching a workspace over server-sent events and over a WebSocket, parsed as strictly as by genuine clients.
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

/** Watches the workspace until it has this status, and returns the events and the statuses. */
const watchUntil = async (
  client: Client,
  id: string,
  lastStatus: string,
): Promise<{ events: string[]; statuses: string[] }> => {
  const abort = new AbortController();
  const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, { signal: abort.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  const events: string[] = [];
  const statuses: string[] = [];
  for await (const { event, data } of readEvents<Workspace>(response)) {
    events.push(event);
    if (data) statuses.push(data.latest_build.status);
    if (statuses.at(-1) === lastStatus) break;
  }
  abort.abort();
  return { events, statuses };
};

test("[WK-9] [EV-1] the stream starts with a ping and sends the whole workspace now and after each change, in order", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const stopping = watchUntil(world.admin, id, "stopped");
  const watching = world.server.context;
  await until(() => !watching || watching.streams.size > 0);
  await createBuild(world.admin, id, "stop");
  const { events, statuses } = await stopping;
  expect(events.slice(0, 2)).toEqual(["ping", "data"]);
  expect(statuses.at(0)).toBe("running");
  const order = ["running", "pending", "stopping", "stopped"];
  expect(statuses.map((status) => order.indexOf(status))).toEqual(
    [...statuses.keys()].map((i) => order.indexOf(statuses[i] ?? "")),
  );
  expect([...statuses].sort((a, b) => order.indexOf(a) - order.indexOf(b))).toEqual(statuses);
  expect(new Set(statuses).size).toBe(statuses.length);
});

test("[WK-10] the WebSocket sends a ping, then the workspace; the server disconnects a client that sends anything", async () => {
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

test("[WK-11] a stream ends when its session is revoked, and leaves nothing behind", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const { topics, streams } = getContext(world.server);
  const response = await world.admin.fetch("GET", `/api/v2/workspaces/${id}/watch`);
  const events = readEvents(response);
  await events.next();
  topics.publish("key_gone", (world.admin.token ?? "").split("-")[0] ?? "", {});
  let event = await events.next();
  while (!event.done) event = await events.next();
  expect(streams.size).toBe(0);
});

test("[EV-2] the stream sends a ping every 15 seconds", async () => {
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

test("[EV-3] the server disconnects a reader that does not read", async () => {
  await using world = await openWorld();
  // With several nodes, more sockets buffer data, so the workspace has to be large.
  const resources = [{ name: "main", agents: [{ name: "dev", env: { PADDING: "x".repeat(32_000) } }] }];
  const { template_id } = await seedTemplate(world.server, { provisioner: "echo", resources });
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const { topics, streams, workspaces, store } = getContext(world.server);
  const { port, hostname } = world.server.url;
  const stalled = connect(Number(port), hostname);
  stalled.pause();
  const requestHead = `GET /api/v2/workspaces/${id}/watch HTTP/1.1\r\nHost: ${hostname}:${port}\r\n`;
  stalled.write(`${requestHead}Service-Session-Token: ${world.admin.token}\r\n\r\n`);
  await until(() => streams.size > 0);
  expect(workspaces.size).toBeGreaterThan(0);
  const touchWorkspace = "update workspaces set last_used_at = last_used_at + 1 where id = ?";
  let changes = 0;
  while (streams.size > 0 && changes < 5_000) {
    await store.commit([{ sql: touchWorkspace, rows: [[id]] }]);
    topics.publish("workspace_changed", id, { agent_id: id });
    changes += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(streams.size).toBe(0);
  stalled.destroy();
});

test("[EV-4] the number of event streams is limited and shared among callers; a stream that ends makes room", async () => {
  await using world = await openWorld({ env: { SLIPWAY_MAX_CONNECTIONS: "4" } });
  const { template_id, organization_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  const { streams } = getContext(world.server);
  // Keeps references, because garbage collection of a response ends its stream.
  const responses: Response[] = [];
  const watch = async (client: Client) => {
    const abort = new AbortController();
    const options = { signal: abort.signal };
    const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, options);
    responses.push(response);
    return { status: response.status, leave: () => abort.abort() };
  };
  const [second, third] = [
    await seedUser(world.server, { roles: ["owner"], organization_id }),
    await seedUser(world.server, { roles: ["owner"], organization_id }),
  ];
  const secondClient = world.admin.withToken(second.token);
  const thirdClient = world.admin.withToken(third.token);
  const headResponse = await world.admin.fetch("HEAD", `/api/v2/workspaces/${id}/watch`);
  expect([headResponse.status, headResponse.headers.get("content-type"), streams.size]).toEqual([
    200,
    "text/event-stream",
    0,
  ]);
  const [first, ...more] = [await watch(world.admin), await watch(world.admin)];
  expect([first, ...more].map((watcher) => watcher?.status)).toEqual([200, 200]);
  expect([(await watch(world.admin)).status, (await watch(secondClient)).status]).toEqual([503, 200]);
  expect((await watch(thirdClient)).status).toBe(503);
  first?.leave();
  await until(() => streams.size <= 2);
  expect((await watch(thirdClient)).status).toBe(200);
  expect(responses.length).toBe(6);
});
