// A node that accepts requests but no longer responds, as if paused: requests that others have forwarded to it, over real sockets.
import { afterEach, expect, test } from "bun:test";
import type { Socket } from "bun";
import { systemClock } from "#base/clock.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

const TOKEN = "the-token-of-the-nodes";
const STATE = { node: "active", lease: "held", database: "answers", standby: "connected" } as const;
const UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
const SWITCHED = `HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}\r\n`;
const EVENTS = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** Starts two nodes. `silent` begins responses to some paths, and then hangs; `successor` takes over its shards. */
const startNodes = () => {
  const arrived: { path: string; socket: Socket }[] = [];
  const silent = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, bytes) {
        const [, path] = /^[A-Z]+ (\S+) /.exec(bytes.toString("latin1")) ?? [];
        if (path === undefined) return;
        if (path === "/stream") socket.write(EVENTS);
        if (path === "/socket") socket.write(SWITCHED);
        arrived.push({ path, socket });
      },
    },
  });
  const successor = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => new Response(`next: ${request.method} ${await request.text()}`),
  });
  const state = { incarnation: 1 as number | undefined, isOwn: false };
  const silentAddress = `127.0.0.1:${silent.port}`;
  const successorAddress = { hostname: "127.0.0.1", port: successor.port as number };
  const options = {
    hostname: "127.0.0.1",
    port: 0,
    clock: systemClock,
    max_connections: 100,
    token: TOKEN,
    isOurs: () => true,
  };
  const active = new Forwarder({
    ...options,
    shards: {
      here: () => successorAddress,
      has: () => state.isOwn,
      addressOf: () => (state.isOwn ? undefined : silentAddress),
      incarnationAt: (node) => (node === silentAddress ? state.incarnation : undefined),
      shardOf: async () => 7,
    },
    state: () => STATE,
  });
  const spare = new Forwarder({
    ...options,
    leader: () =>
      state.isOwn ? `127.0.0.1:${successor.port}` : state.incarnation === undefined ? undefined : silentAddress,
    own: () => `127.0.0.1:${successor.port}`,
    state: () => ({ ...STATE, node: "spare" }),
  });
  cleanups.push(
    () => active.end(),
    () => spare.end(),
    () => silent.stop(true),
    () => void successor.stop(true),
  );
  const sendRequest = (forwarder: Forwarder, head: string, rest = ""): RawConnection => {
    const connection = new RawConnection(new URL(`http://127.0.0.1:${forwarder.port}`));
    connection.send(`${head} HTTP/1.1\r\nHost: x\r\n${rest || "\r\n"}`);
    cleanups.push(() => connection[Symbol.dispose]());
    return connection;
  };
  return { arrived, state, active, spare, sendRequest };
};

for (const kind of ["active", "spare"] as const)
  test(`[CL-62] requests that wait for a replaced node are retried on the next one, answered with an error or disconnected (${kind})`, async () => {
    const nodes = startNodes();
    const { arrived, state, sendRequest } = nodes;
    const forwarder = nodes[kind];
    const read = sendRequest(forwarder, "GET /read");
    const early = sendRequest(forwarder, "GET /early", `${UPGRADE}\r\n`);
    const write = sendRequest(forwarder, "PUT /write", "Content-Length: 4\r\n\r\nfour");
    const partial = sendRequest(forwarder, "PUT /half", "Content-Length: 4000000\r\n\r\nbegun");
    const stream = sendRequest(forwarder, "GET /stream");
    const socket = sendRequest(forwarder, "GET /socket", `${UPGRADE}\r\n`);
    await until(() => arrived.length === 6, { what: "the node to receive all requests" });
    await stream.until((text) => text.includes("data: 1"));
    await socket.until((text) => text.endsWith("\r\n\r\n"));
    // Until a node takes over, all requests wait.
    state.incarnation = undefined;
    if (kind === "active") state.incarnation = 1;
    const waitStart = systemClock.monotonic();
    await until(() => systemClock.monotonic() - waitStart > 1_000);
    expect([read, early, write, partial].map(({ received }) => received)).toEqual(["", "", "", ""]);

    const takeoverStart = systemClock.monotonic();
    state.incarnation = 2;
    state.isOwn = true;
    expect(await read.until((text) => text.includes("next:"))).toMatch(/^HTTP\/1\.1 200 .*next: GET $/s);
    expect(await early.until((text) => text.includes("next:"))).toContain("next: GET ");
    for (const connection of [write, partial])
      expect(await connection.until((text) => text.includes("}"))).toMatch(
        /^HTTP\/1\.1 500 .*The node that handled this request stopped responding. The request may or may not have taken effect\./s,
      );
    await Promise.all([stream.closed, socket.closed]);
    expect(systemClock.monotonic() - takeoverStart).toBeLessThan(2_000);
    expect(stream.received).toEndWith("data: 1\n\n");
    expect(socket.received).toBe(SWITCHED);
  });

test("[CL-62] a node that stops cleanly completes its output", async () => {
  const { arrived, state, active, sendRequest } = startNodes();
  const read = sendRequest(active, "GET /read");
  await until(() => arrived.length === 1);
  const { socket } = arrived[0] as { socket: Socket };
  state.incarnation = undefined;
  state.isOwn = true;
  socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
  for (let n = 0; n < 8; n++) {
    const sentAt = systemClock.monotonic();
    await until(() => systemClock.monotonic() - sentAt > 250);
    socket.write(`${n}`);
  }
  socket.end();
  await read.closed;
  expect(read.received).toEndWith("\r\n\r\n01234567");
});
