// Watching an agent's metadata over server-sent events and over a WebSocket, with a manual clock.
import { expect, test } from "bun:test";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Client } from "#src/client.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { readEvents } from "#test/support/net/event-reader.ts";
import { getContext, type SeededAgent, seedAgent, seedUser, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";

type Metadata = WorkspaceAgent["metadata"];
type Message = { type: string; data: Metadata };

const METADATA = [
  { key: "b", display_order: 1 },
  { key: "a", display_order: 1, display_name: "CPU" },
  { key: "z", display_order: 0 },
];
const toAgentPath = ({ agent_id }: SeededAgent, kind: string) => `/api/v2/workspaceagents/${agent_id}/${kind}`;
const reportValue = (server: TestServer, { agent_id }: SeededAgent, value: string) =>
  getContext(server).agents.ask(agent_id, "reportMetadata", { results: [{ key: "a", value, error: "" }] });
const findValue = (metadata: Metadata | undefined) =>
  metadata?.find(({ description }) => description.key === "a")?.result.value;

const openWatcher = (server: TestServer, seeded: SeededAgent) =>
  new Client(server.url, seeded.owner_token).socket(toAgentPath(seeded, "watch-metadata-ws"));

test("[MD-1] both streams start with all values in display order, then by key, with their age in seconds", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const seeded = await seedAgent(server, { metadata: METADATA });
  await reportValue(server, seeded, "7 %");
  clock.advance(3_500);
  using socket = await openWatcher(server, seeded);
  const { type, data } = await socket.json<Message>();
  expect(type).toBe("data");
  expect(data.map(({ description }) => description.key)).toEqual(["z", "a", "b"]);
  expect(data[1]).toMatchObject({ description: { display_name: "CPU" }, result: { value: "7 %", error: "", age: 3 } });
  expect(data[0]?.result).toEqual({ collected_at: "0001-01-01T00:00:00Z", value: "", error: "", age: 0 } as never);
  const abort = new AbortController();
  const owner = new Client(server.url, seeded.owner_token);
  const stream = await owner.fetch("GET", toAgentPath(seeded, "watch-metadata"), undefined, { signal: abort.signal });
  const events = readEvents(stream);
  expect((await events.next()).value).toEqual({ event: "ping" });
  expect((await events.next()).value).toEqual({ event: "data", data });
  abort.abort();
});

test("[MD-2] watchers get changes together at most once a second, and unchanged values every five seconds", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const seeded = await seedAgent(server, { metadata: METADATA });
  using socket = await openWatcher(server, seeded);
  await socket.json<Message>();
  for (const value of ["1", "2", "3"]) await reportValue(server, seeded, value);
  clock.advance(1_000);
  expect(findValue((await socket.json<Message>()).data)).toBe("3");
  // During these four seconds nothing is sent; otherwise the next message would be different.
  clock.advance(4_000);
  await reportValue(server, seeded, "4");
  clock.advance(1_000);
  expect(findValue((await socket.json<Message>()).data)).toBe("4");
  clock.advance(4_000);
  clock.advance(1_000);
  const { data } = await socket.json<Message>();
  expect([findValue(data), data[1]?.result.age]).toEqual(["4", 6]);
});

test("[MD-3] many watchers share one timer and leave nothing behind", async () => {
  const clock = new ManualClock();
  await using server = await startTestServer({ clock });
  const seeded = await seedAgent(server, { metadata: METADATA });
  const { topics } = getContext(server);
  let timerCount = 0;
  const every = clock.every.bind(clock);
  clock.every = (ms, run) => {
    if (ms === 1_000) timerCount++;
    return every(ms, run);
  };
  const sockets = await Promise.all(Array.from({ length: 20 }, () => openWatcher(server, seeded)));
  for (const socket of sockets) await socket.json<Message>();
  expect(timerCount).toBe(1);
  await reportValue(server, seeded, "all");
  clock.advance(1_000);
  for (const socket of sockets) expect(findValue((await socket.json<Message>()).data)).toBe("all");
  for (const socket of sockets) socket.close();
  await until(() => !topics.hasListeners("agent_metadata", seeded.agent_id));
});

test("[MD-4] users without access get 404; a newer build or a message from the client ends a stream", async () => {
  await using server = await startTestServer({ clock: new ManualClock() });
  const seeded = await seedAgent(server, { metadata: METADATA });
  const outsider = new Client(server.url, (await seedUser(server)).token);
  for (const kind of ["watch-metadata", "watch-metadata-ws"]) {
    expect((await outsider.fetch("GET", toAgentPath(seeded, kind))).status).toBe(404);
  }
  const sendingSocket = await openWatcher(server, seeded);
  sendingSocket.send("hello");
  expect((await sendingSocket.closed).code).toBe(1008);
  const socket = await openWatcher(server, seeded);
  const owner = new Client(server.url, seeded.owner_token);
  const stream = await owner.fetch("GET", toAgentPath(seeded, "watch-metadata"));
  await socket.json<Message>();
  await supersedeAgent(server, seeded);
  expect(await socket.closed).toEqual({ code: 1001, reason: "a newer build has taken over" });
  const events: string[] = [];
  for await (const { event } of readEvents(stream)) events.push(event);
  expect(events.slice(0, 1)).toEqual(["ping"]);
});
