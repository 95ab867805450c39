// Watching a workspace, over server-sent events and over a WebSocket, read as strictly as genuine clients do.
import { expect, test } from "bun:test";
import { connect } from "node:net";
import { Value } from "@sinclair/typebox/value";
import { Workspace } from "#schema/workspace.ts";
import type { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { contextOf } from "#test/support/seed.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld, seedTemplate } from "#test/support/workspaces.ts";

type Event = { event: string; data?: Workspace };

/** Reads events as a strict reader: an event line, at most one data line, an empty line; anything else is an error. */
const readEvents = async function* (response: Response): AsyncGenerator<Event> {
  if (!response.body) throw new Error("no body");
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [first = "", second, ...more] = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const event = /^event: (data|ping|error)$/.exec(first)?.[1];
      if (!event || more.length > 0) throw new Error(`not an event: ${first}`);
      if (second !== undefined && !second.startsWith("data: ")) throw new Error(`not data: ${second}`);
      yield { event, ...(second === undefined ? {} : { data: JSON.parse(second.slice(6)) }) };
    }
  }
};

const statuses = async (client: Client, id: string, until: string): Promise<{ events: string[]; seen: string[] }> => {
  const abort = new AbortController();
  const response = await client.fetch("GET", `/api/v2/workspaces/${id}/watch`, undefined, { signal: abort.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  const events: string[] = [];
  const seen: string[] = [];
  for await (const { event, data } of readEvents(response)) {
    events.push(event);
    if (data) seen.push(data.latest_build.status);
    if (seen.at(-1) === until) break;
  }
  abort.abort();
  return { events, seen };
};

test("[WK-9] [EV-1] the stream begins with a ping and the workspace, and gives it whole after each change, in order", async () => {
  await using world = await openWorld();
  const { template_id } = await seedTemplate(world.server);
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const stopping = statuses(world.admin, id, "stopped");
  const watching = world.server.context;
  while (watching && watching.streams.size === 0) await new Promise((resolve) => setImmediate(resolve));
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

test("[WK-10] the WebSocket twin says ping, then the workspace; a client that sends anything is closed", async () => {
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
  const { topics, streams } = contextOf(world.server);
  const response = await world.admin.fetch("GET", `/api/v2/workspaces/${id}/watch`);
  const events = readEvents(response);
  await events.next();
  topics.publish("key_gone", (world.admin.token ?? "").split("-")[0] ?? "", {});
  let last = await events.next();
  while (!last.done) last = await events.next();
  expect(streams.size).toBe(0);
});

test("[EV-2] a ping goes out every 15 seconds", async () => {
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

test("[EV-3] a reader that does not read is ended, and what waits for it is bounded", async () => {
  await using world = await openWorld();
  const resources = [{ name: "main", agents: [{ name: "dev", env: { PADDING: "x".repeat(4_000) } }] }];
  const { template_id } = await seedTemplate(world.server, { provisioner: "echo", resources });
  const { id } = await createWorkspace(world.admin, template_id);
  await awaitBuild(world.admin, id);
  const { topics, streams, workspaces, store } = contextOf(world.server);
  const { port, hostname } = world.server.url;
  const stalled = connect(Number(port), hostname);
  stalled.pause();
  const head = `GET /api/v2/workspaces/${id}/watch HTTP/1.1\r\nHost: ${hostname}:${port}\r\n`;
  stalled.write(`${head}Service-Session-Token: ${world.admin.token}\r\n\r\n`);
  while (streams.size === 0) await new Promise((resolve) => setImmediate(resolve));
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
}, 30_000);
