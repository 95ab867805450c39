// Streams to an agent whose tunnel ends at another node, over a real link: the agent is a listener on this machine.
import { afterEach, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import type { Shards } from "#base/shards.ts";
import { ShardIndex } from "#db/shard-index.ts";
import { createSharedLocation } from "#src/cluster/location.ts";
import { connectSocket } from "#src/daemon/connection/tunnel-socket.ts";
import type { AgentDialer } from "#src/wire/agent-dialer.ts";
import { AgentHttp } from "#src/wire/agent-http.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { createLinkedNode } from "#test/support/cluster/linked-node.ts";

const SHARD = 7;
const AGENT = "agent";
const disposables: Disposable[] = [];
afterEach(() => {
  for (const disposable of disposables.splice(0)) disposable[Symbol.dispose]();
});

const NO_TUNNELS: AgentDialer = {
  isDaemon: () => false,
  dial: () => Promise.reject(new AppError("invalid", "The agent is not connected.")),
};

/** Creates two nodes. The second has the shard while `shared.hasB` is true, and dials ports of this machine. */
const createCluster = (hasB = true) => {
  const [a, b] = [createLinkedNode("a"), createLinkedNode("b")];
  disposables.push(a, b);
  const shared = { hasB: hasB };
  const stored = { get: () => Promise.resolve({ part: SHARD } as never) };
  const createLocation = (links: typeof a.links, shards: Shards) =>
    createSharedLocation({ clock: systemClock, shards, links, index: new ShardIndex(stored) });
  const locationA = createLocation(a.links, {
    has: () => false,
    isFirst: true,
    arrivals: 0,
    nodeOf: () => (shared.hasB ? b.nodeRef : undefined),
  });
  const locationB = createLocation(b.links, {
    has: () => shared.hasB,
    isFirst: false,
    arrivals: 0,
    nodeOf: () => undefined,
  });
  locationB.openDialer({
    isDaemon: () => true,
    dial: (_, port) => connectSocket({ hostname: "127.0.0.1", port }, systemClock),
  });
  return { dialer: locationA.openDialer(NO_TUNNELS), shared, b };
};

/** Starts an echo server. */
const startEchoServer = () => {
  const unsentBytes = new Map<object, Buffer>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    socket: {
      data(socket, bytes) {
        const unsent = Buffer.concat([unsentBytes.get(socket) ?? Buffer.alloc(0), bytes]);
        unsentBytes.set(socket, unsent.subarray(socket.write(unsent)));
      },
      drain(socket) {
        const unsent = unsentBytes.get(socket) ?? Buffer.alloc(0);
        unsentBytes.set(socket, unsent.subarray(socket.write(unsent)));
      },
      end: (socket) => void socket.end(),
    },
  });
  disposables.push({ [Symbol.dispose]: () => listener.stop(true) });
  return listener.port;
};

test("[CP-24] bytes flow to and from an agent of another node, as fast as they are read, and each side closes separately", async () => {
  const { dialer } = createCluster();
  const stream = await dialer.dial(AGENT, startEchoServer());
  const sent = Buffer.alloc(3 * 1024 * 1024, "0123456789abcdef");
  void stream.write(sent).catch(() => {});
  let size = 0;
  const received: Uint8Array[] = [];
  while (size < sent.length) {
    const chunk = (await stream.read()) as Uint8Array;
    received.push(chunk);
    size += chunk.byteLength;
  }
  expect(Buffer.concat(received).equals(sent)).toBe(true);
  await stream.end();
  expect(await stream.read()).toBeUndefined();
  expect(await stream.closed).toBeUndefined();
});

test("[CP-24] requests to its HTTP API are answered, several over one stream", async () => {
  const { dialer } = createCluster();
  const server = Bun.serve({
    port: 0,
    fetch: async (request) => new Response(`${request.method} ${await request.text()}`),
  });
  disposables.push({ [Symbol.dispose]: () => void server.stop(true) });
  const http = new AgentHttp(dialer, systemClock);
  const port = server.port as number;
  for (const text of ["one", "two"]) {
    const request = {
      method: "POST",
      path: "/",
      port,
      body: new TextEncoder().encode(text),
      headers: [["host", "agent"]] as const,
    };
    expect(await (await http.request(AGENT, request)).text()).toBe(`POST ${text}`);
  }
});

test("[CP-24] a refusal by another node is returned with the same message; no node is called while none owns the shard", async () => {
  const { dialer, shared } = createCluster();
  const error = await dialer.dial(AGENT, 1).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(WireError);
  expect((error as WireError).failure).toBe("refused");
  shared.hasB = false;
  expect(((await dialer.dial(AGENT, 1).catch((error: unknown) => error)) as WireError).failure).toBe("refused");
});

test("[CP-24] a stream breaks with the node that holds it", async () => {
  const { dialer, b } = createCluster();
  const stream = await dialer.dial(AGENT, startEchoServer());
  const reading = stream.read().catch((error: unknown) => error);
  b[Symbol.dispose]();
  expect(await reading).toBeInstanceOf(WireError);
  expect(await stream.closed).toBeInstanceOf(WireError);
  await expect(stream.write(Buffer.from("x"))).rejects.toBeInstanceOf(WireError);
});

test("[CP-24] a reset by the caller ends a stream at the agent", async () => {
  const { dialer } = createCluster();
  const closed = Promise.withResolvers<void>();
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: () => {}, close: () => closed.resolve(), error: () => closed.resolve() },
  });
  disposables.push({ [Symbol.dispose]: () => listener.stop(true) });
  const stream = await dialer.dial(AGENT, listener.port);
  stream.reset("enough");
  await closed.promise;
  expect((await stream.closed)?.failure).toBe("reset");
});
