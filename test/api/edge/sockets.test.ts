// WebSockets of broken or hostile clients on the real routes: invalid frames, compression bombs, floods, connection storms.
import { describe, expect, test } from "bun:test";
import { deflateRawSync } from "node:zlib";
import { systemClock } from "#base/clock.ts";
import { shareOfMemory } from "#base/system/memory.ts";
import { MemoryGuard } from "#src/api/http/memory-guard.ts";
import { Sockets } from "#src/api/http/socket.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext, seedAgent } from "#test/support/seed.ts";
import { startTestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { type FrameOptions, frame, parseCloseCode } from "./frames.ts";
import { call, formatHead, handshake } from "./raw-http.ts";

// Agents are written directly to the store, so the server runs in this process even if the binary is under test.
const server = await forFile(startTestServer({ clock: systemClock }));
const seeded = await seedAgent(server);

const routes = {
  "a follower of logs": () => ({
    path: `/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true`,
    token: seeded.owner_token,
  }),
  "an agent's connection": () => ({ path: "/api/v2/workspaceagents/me/rpc", token: seeded.agent_token }),
  "an agent's tunnel": () => ({ path: "/api/v2/workspaceagents/me/tunnel", token: seeded.agent_token }),
};

const open = async (route: keyof typeof routes, extra: Record<string, string> = {}): Promise<RawConnection> => {
  const { path, token } = routes[route]();
  const connection = new RawConnection(server.url);
  connection.send(handshake(path, { "Service-Session-Token": token, ...extra }));
  const answer = await connection.until((text) => text.includes("\r\n\r\n"));
  expect(answer).toStartWith("HTTP/1.1 101");
  return connection;
};

/** Resolves when the server has no open sockets and no followers. */
const awaitNoSockets = async (): Promise<void> => {
  const { sockets } = getContext(server);
  await until(() => sockets.counts.open === 0 && sockets.counts.topics === 0);
};

/** Inflates to 50 MiB. */
const BOMB = frame(2, deflateRawSync(Buffer.alloc(50 << 20, 97)), { reserved: 0x40 });

const brokenFrames: [string, number, string | Uint8Array, FrameOptions][] = [
  ["an unmasked frame", 1, "hi", { masked: false }],
  ["a reserved opcode", 3, "hi", {}],
  ["a reserved control opcode", 11, "", {}],
  ["compression that was not agreed on", 1, "hi", { reserved: 0x40 }],
  ["a reserved bit", 1, "hi", { reserved: 0x20 }],
  ["text that is not UTF-8", 1, new Uint8Array([0xff, 0xfe]), {}],
  ["a ping of 126 bytes", 9, new Uint8Array(126), {}],
  ["a ping in parts", 9, "x", { final: false }],
  ["a continuation of nothing", 0, "x", {}],
  ["a length of 2^62", 1, "x", { announcedLength: 2 ** 62 }],
  ["more than the largest message", 2, new Uint8Array(5 << 20), {}],
  ["a close frame with a forbidden code", 8, new Uint8Array([0x03, 0xed]), {}],
];

describe.each(Object.keys(routes) as (keyof typeof routes)[])("%s", (route) => {
  for (const [name, opcode, payload, options] of brokenFrames) {
    test(`[HT-17] ${route}: ${name} ends the connection and nothing else`, async () => {
      using connection = await open(route);
      connection.send(frame(opcode, payload, options));
      await connection.until((text) => parseCloseCode(text) !== undefined);
      const code = parseCloseCode(connection.received);
      if (code !== undefined) expect([1000, 1002, 1003, 1005, 1007, 1008, 1009]).toContain(code);
      connection[Symbol.dispose]();
      await awaitNoSockets();
      expect((await call(server.url, formatHead("GET", "/healthz")))?.status).toBe(200);
    });
  }

  test(`[HT-17] ${route}: 50 MiB in a compressed frame of 50 KB are refused, not inflated`, async () => {
    using connection = await open(route, { "Sec-WebSocket-Extensions": "permessage-deflate" });
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    connection.send(BOMB);
    await connection.until((text) => parseCloseCode(text) !== undefined);
    // Inflated only up to the largest message that apps may send (32 MiB), in a buffer that doubles as it grows.
    expect(process.memoryUsage.rss() - before).toBeLessThan(112 << 20);
    connection[Symbol.dispose]();
    await awaitNoSockets();
  });

  test(`[HT-17] ${route}: a message that never ends does not delay other clients`, async () => {
    using connection = await open(route);
    connection.send(frame(2, "", { final: false }));
    connection.send(Buffer.concat(Array.from({ length: 100_000 }, () => frame(0, "", { final: false }))));
    expect((await call(server.url, formatHead("GET", "/healthz")))?.status).toBe(200);
    connection[Symbol.dispose]();
    await awaitNoSockets();
  });

  test(`[HT-18] ${route}: 32 MiB of small messages are cut off early, and memory stays bounded`, async () => {
    using connection = await open(route);
    const before = process.memoryUsage.rss();
    const some = Buffer.concat(Array.from({ length: 1000 }, () => frame(1, "x".repeat(1000))));
    for (
      let sent = 0;
      sent < 32 << 20 && !connection.socket.closed && connection.socket.writable;
      sent += some.length
    ) {
      connection.send(some);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await connection.until((text) => parseCloseCode(text) !== undefined);
    expect(process.memoryUsage.rss() - before).toBeLessThan(96 << 20);
    connection[Symbol.dispose]();
    await awaitNoSockets();
  });
});

test("[HT-18] no connection remains after many clients connect simultaneously", async () => {
  const { topics, agents } = getContext(server);
  const receivedItems = topics.size;
  const follow = async (): Promise<void> => {
    const client = new Client(server.url, seeded.owner_token);
    for (let i = 0; i < 25; i++) {
      const socket = await client.socket(`/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true`);
      // Some close properly, others vanish.
      if (i % 2 === 0) socket[Symbol.dispose]();
      else socket.close();
    }
  };
  await Promise.all(Array.from({ length: 8 }, follow));
  await awaitNoSockets();
  expect(topics.size).toBe(receivedItems);
  expect(getContext(server).requests.size).toBe(0);
  expect(agents).toBeDefined();
});

test("[AX-28] closed sockets of visitors free their slots, and have a separate limit until their data has left memory", async () => {
  const clock = new ManualClock();
  // Messages so long that there are few visitors on a machine of any size.
  const sockets = new Sockets(clock, 100, undefined, 2 ** 40);
  const served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      try {
        return sockets.upgrade(request, {}, { visits: request.headers.get("app") ?? undefined });
      } catch (error) {
        return new Response((error as Error).message, { status: 503 });
      }
    },
    websocket: { ...sockets.websocket, maxPayloadLength: 1_000, backpressureLimit: 1_000 } as never,
  });
  sockets.attach(served as never);
  using _stopped = { [Symbol.dispose]: () => void served.stop(true) };
  const visitors: RawConnection[] = [];
  const visit = async (app?: string): Promise<string> => {
    const visitor = new RawConnection(served.url);
    visitors.push(visitor);
    visitor.send(handshake("/", app === undefined ? {} : { app }));
    return (await visitor.until((text) => text.includes("\r\n\r\n"))).slice(9, 12);
  };
  const open = (app: string, count: number) => Promise.all(Array.from({ length: count }, () => visit(app)));
  expect([await open("one", 6), await visit("one")]).toEqual([Array(6).fill("101"), "503"]);
  expect([await open("two", 2), await visit("two"), await visit()]).toEqual([["101", "101"], "503", "101"]);
  // Messages are unfinished, and clients don't close their side.
  const leave = async (visitor: RawConnection | undefined): Promise<void> => {
    const { open: before } = sockets.counts;
    visitor?.send(frame(2, "beginning", { final: false }));
    visitor?.send(frame(8, new Uint8Array([0x03, 0xe8])));
    await until(() => sockets.counts.open < before);
  };
  const answers: string[] = [];
  for (const one of visitors.slice(0, 6)) {
    await leave(one);
    answers.push(await visit("one"));
  }
  expect(answers).toEqual([...Array(5).fill("101"), "503"]);
  clock.advance(20_000);
  expect(await visit("one")).toBe("101");
  for (const one of visitors) one[Symbol.dispose]();
});

/** A server with WebSockets of named holders; the test sets which share of the memory is used. */
const openMemoryStory = () => {
  const clock = new ManualClock();
  const memory = { usedShare: 0 };
  const readUsedBytes = (): number => memory.usedShare * process.constrainedMemory();
  const sockets = new Sockets(clock, 1_000, undefined, undefined, readUsedBytes);
  const served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      const [who, owner] = ["who", "owner"].map((name) => request.headers.get(name) ?? undefined);
      try {
        return sockets.upgrade(request, {}, who === undefined ? {} : owner === undefined ? { who } : { who, owner });
      } catch (error) {
        return new Response((error as Error).message, { status: 503 });
      }
    },
    websocket: sockets.websocket as never,
  });
  sockets.attach(served as never);
  const opened = new DisposableStack();
  opened.defer(() => void served.stop(true));
  const open = async (headers: Record<string, string>): Promise<RawConnection> => {
    const connection = opened.use(new RawConnection(served.url));
    connection.send(handshake("/", headers));
    await connection.until((text) => text.includes("\r\n\r\n"));
    return connection;
  };
  return {
    clock,
    memory,
    sockets,
    open,
    openAll: (count: number, headers: Record<string, string> = {}) =>
      Promise.all(Array.from({ length: count }, () => open(headers))),
    [Symbol.dispose]: () => opened.dispose(),
  };
};
const countOpen = (connections: readonly RawConnection[]): number =>
  connections.filter(({ socket }) => !socket.closed).length;

test("[AX-30] while memory is short, the user with the most WebSockets loses them, one user a second", async () => {
  using story = openMemoryStory();
  const { clock, memory, sockets } = story;
  const eve = await story.openAll(20, { who: "eve" });
  const bob = await story.openAll(17, { who: "bob" });
  const alice = await story.openAll(16, { who: "alice" });
  const unknown = await story.openAll(18);
  for (const connection of eve) connection.send(frame(2, "beginning", { final: false }));
  const openCounts = (): number[] => [eve, bob, alice, unknown].map(countOpen);

  clock.advance(5_000);
  expect([sockets.counts.open, openCounts()]).toEqual([71, [20, 17, 16, 18]]);

  memory.usedShare = 0.8;
  expect((await story.open({ who: "alice" })).received).toStartWith("HTTP/1.1 503");
  clock.advance(1_000);
  await until(() => openCounts()[0] === 0);
  expect(openCounts()).toEqual([0, 17, 16, 18]);

  clock.advance(1_000);
  await until(() => openCounts()[1] === 0);
  clock.advance(2_000);
  expect([sockets.counts.open, openCounts()]).toEqual([34, [0, 0, 16, 18]]);

  // With memory again, everyone can connect.
  memory.usedShare = 0;
  expect((await story.open({ who: "alice" })).received).toStartWith("HTTP/1.1 101");
});

test("[AX-30] while memory is short, the agents of one user count together, however many tokens they have", async () => {
  using story = openMemoryStory();
  const eve = await Promise.all(
    ["agent 1", "agent 2", "agent 3"].map((who) => story.openAll(6, { who, owner: "agents of eve" })),
  );
  const bob = await story.openAll(8, { who: "agent 4", owner: "agents of bob" });
  story.memory.usedShare = 0.8;
  expect((await story.open({ who: "agent 5", owner: "agents of eve" })).received).toStartWith("HTTP/1.1 503");
  story.clock.advance(1_000);
  await until(() => countOpen(eve.flat()) === 0);
  expect(countOpen(bob)).toBe(8);
});

test("[AX-30] while memory is short, many users with many WebSockets keep fewer each", () => {
  const clock = new ManualClock();
  const closed: string[] = [];
  const guard = new MemoryGuard<string>({
    clock,
    readUsedBytes: () => shareOfMemory(0.8),
    maxMessageBytes: shareOfMemory(1 / 64),
    close: (connection) => closed.push(connection),
  });
  const open = (user: string, count: number): void => {
    for (let i = 0; i < count; i++) guard.add(user, `${user} ${i}`);
  };
  open("eve", 10);
  open("mallory", 9);
  open("bob", 3);
  clock.advance(1_000);
  expect(closed).toEqual([]);
  open("trudy", 9);
  open("oscar", 9);
  clock.advance(1_000);
  expect(closed).toEqual(Array.from({ length: 10 }, (_, i) => `eve ${i}`));
});

test("[AX-30] while memory is nearly used up, several users with few WebSockets each lose them, too", async () => {
  using story = openMemoryStory();
  const { clock, memory } = story;
  // The memory is full whatever is closed.
  const crowd = await Promise.all(["eve", "bob", "carl"].map((who) => story.openAll(16, { who })));
  const alice = await story.openAll(4, { who: "alice" });
  memory.usedShare = 0.8;
  clock.advance(4_000);
  expect([story.sockets.counts.open, ...crowd.map(countOpen)]).toEqual([52, 16, 16, 16]);

  memory.usedShare = 0.9;
  clock.advance(60);
  await until(() => countOpen(crowd.flat()) === 32);
  clock.advance(120);
  await until(() => countOpen(crowd.flat()) === 0);
  clock.advance(5_000);
  expect(countOpen(alice)).toBe(4);
  expect((await story.open({ who: "alice" })).received).toStartWith("HTTP/1.1 503");
});

test("[AX-30] a user whose WebSockets hold no memory loses them once, and the users who fill it lose theirs", async () => {
  using story = openMemoryStory();
  const { clock, memory, sockets } = story;
  const idle = await story.openAll(20, { who: "bob" });
  const full = await Promise.all(["eve", "mallory"].map((who) => story.openAll(16, { who })));
  memory.usedShare = 0.8;
  clock.advance(1_000);
  await until(() => countOpen(idle) === 0);
  // It is known a second later that this has freed nothing.
  clock.advance(1_000);
  // The memory stays full, and the others keep their sockets until they have lasted for five seconds.
  const again = await story.openAll(20, { who: "bob" });
  expect(again.every(({ received }) => received.startsWith("HTTP/1.1 101"))).toBe(true);
  clock.advance(2_000);
  expect([sockets.counts.open, countOpen(again)]).toEqual([52, 20]);
  clock.advance(4_000);
  await until(() => countOpen(full.flat()) === 0);
  expect(countOpen(again)).toBe(20);

  // No user is spared when memory is nearly used up.
  memory.usedShare = 0.9;
  clock.advance(250);
  await until(() => countOpen(again) === 0);
});

test("[SK-8] a handler that throws ends its socket only", async () => {
  const sockets = new Sockets(systemClock);
  const served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      sockets.upgrade(request, {
        message: () => {
          throw new RangeError("a bug");
        },
      }),
    websocket: sockets.websocket as never,
  });
  sockets.attach(served as never);
  using _stopped = { [Symbol.dispose]: () => void served.stop(true) };
  for (const _ of ["first", "second"]) {
    const socket = new WebSocket(served.url);
    socket.onopen = () => socket.send("hello");
    const { promise, resolve } = Promise.withResolvers<CloseEvent>();
    socket.onclose = resolve;
    expect(await promise).toMatchObject({ code: 1011, reason: "internal error" });
  }
});

test("[SK-6] a client that exceeds the frame rate is not read for some time, and loses nothing", async () => {
  const clock = new ManualClock();
  const sockets = new Sockets(clock);
  let messages = 0;
  const served = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      sockets.upgrade(request, {
        message: () => {
          messages += 1;
        },
      }),
    websocket: sockets.websocket as never,
  });
  sockets.attach(served as never);
  using _stopped = { [Symbol.dispose]: () => void served.stop(true) };
  using connection = new RawConnection(served.url);
  connection.send(handshake("/"));
  await connection.until((text) => text.includes("\r\n\r\n"));
  const [ping, count] = [frame(9, ""), 400_000];
  connection.send(Buffer.concat(Array.from({ length: count }, () => ping)));
  connection.send(frame(1, "last"));
  const pongs = (): number => (connection.received.length - connection.received.indexOf("\r\n\r\n") - 4) / 2;
  await until(() => pongs() > 19_000);
  // Data that it has already read still counts; the rest waits.
  for (let before = -1; before !== pongs(); await new Promise((resolve) => setImmediate(resolve))) before = pongs();
  expect(pongs()).toBeLessThan(count - 100_000);
  expect(messages).toBe(0);
  await until(() => {
    clock.advance(10_000);
    return messages === 1;
  });
  // Includes the server's own pings.
  expect(pongs()).toBeGreaterThanOrEqual(count);
});
