import { afterEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { systemClock } from "#base/clock.ts";
import { ByteStream, toCloseError } from "#src/wire/byte-stream.ts";
import { call } from "#src/wire/drpc/client.ts";
import { serveSession } from "#src/wire/drpc/server.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { createWebSocketStream } from "#src/wire/websocket.ts";
import { WebSocketFrames } from "#src/wire/websocket-frames.ts";
import { YamuxSession } from "#src/wire/yamux.ts";
import { makePattern, readAll } from "./support.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Starts a server that wraps each WebSocket as a byte stream, as the product does. */
const listen = (onOpen: (stream: ByteStream) => void): string => {
  const server = Bun.serve<{ stream?: ByteStream }, "/">({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, self) => (self.upgrade(request, { data: {} }) ? undefined : new Response("no", { status: 400 })),
    websocket: {
      open(ws) {
        ws.data.stream = new ByteStream({
          send: (bytes) => ws.sendBinary(bytes),
          close: (code, reason) => ws.close(code, reason),
        });
        onOpen(ws.data.stream);
      },
      message: (ws, message) => ws.data.stream?.push(message),
      drain: (ws) => ws.data.stream?.drain(),
      close: (ws, code, reason) => ws.data.stream?.end(toCloseError(code, reason)),
    },
  });
  cleanups.push(() => server.stop(true));
  return `ws://127.0.0.1:${server.port}/`;
};

const openSessions = async (): Promise<{ client: YamuxSession; server: YamuxSession }> => {
  const opened = Promise.withResolvers<YamuxSession>();
  const url = listen((stream) => opened.resolve(new YamuxSession(stream, { role: "server", clock: systemClock })));
  const stream = await createWebSocketStream(new WebSocket(url), systemClock);
  const client = new YamuxSession(stream, { role: "client", clock: systemClock });
  cleanups.push(() => client.close());
  return { client, server: await opened.promise };
};

/** Returns the request of a peer that uses TCP directly, so that it can misbehave below the WebSocket layer. */
const upgradeRequest = ({ host }: URL): string =>
  [
    "GET / HTTP/1.1",
    `Host: ${host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${btoa("0123456789abcdef")}`,
    "\r\n",
  ].join("\r\n");

describe("frames of an app", () => {
  const makeFrames = (
    bytes: Uint8Array,
    budget?: ConstructorParameters<typeof WebSocketFrames>[2],
  ): WebSocketFrames => {
    const chunks = [bytes];
    return new WebSocketFrames({ read: async () => chunks.shift() } as unknown as Duplex, 1_000_000, budget);
  };
  const repeatBytes = (count: number, frame: readonly number[]): number[] =>
    Array.from({ length: count }, () => frame).flat();

  test("[AX-10] joins a message of one-byte pieces and rejects one of endless empty pieces", async () => {
    const pieces = [1, 1, 97, ...repeatBytes(20_000, [0, 1, 98]), 0x80, 0];
    expect(await makeFrames(Uint8Array.from(pieces)).next()).toEqual({ kind: "text", text: `a${"b".repeat(20_000)}` });
    const endless = makeFrames(Uint8Array.from([1, 0, ...repeatBytes(5_000, [0, 0])])).next();
    await expect(endless).rejects.toThrow("too many empty frames");
  });

  test("[AX-29] counts a message's bytes as they arrive, until the next message is read", async () => {
    let heldBytes = 0;
    const budget = {
      add(bytes: number) {
        if (heldBytes + bytes > 5) throw new Error("too many bytes");
        heldBytes += bytes;
      },
      release() {
        heldBytes = 0;
      },
    };
    const [hello, ping, ending] = [
      [1, 3, 97, 98, 99],
      [0x89, 0],
      [0x80, 2, 100, 101],
    ];
    const frames = makeFrames(
      Uint8Array.from([...hello, ...ping, ...ending, 0x82, 1, 1, 2, 5, 1, 2, 3, 4, 5, 0, 1, 6]),
      budget,
    );
    expect([(await frames.next())?.kind, heldBytes]).toEqual(["ping", 3]);
    expect([await frames.next(), heldBytes]).toEqual([{ kind: "text", text: "abcde" }, 5]);
    expect([(await frames.next())?.kind, heldBytes]).toEqual(["binary", 1]);
    await expect(frames.next()).rejects.toThrow("too many bytes");
    frames.discard();
    expect(heldBytes).toBe(0);
  });

  test("[AX-10] lets other work continue while it reads thousands of frames that arrived together", async () => {
    const frames = makeFrames(Uint8Array.from(repeatBytes(10_000, [0x89, 0])));
    let turns = 0;
    let isOver = false;
    const countTurn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(countTurn);
    };
    countTurn();
    for (let count = 0; (await frames.next()) !== undefined; count++) if (count === 9_999) break;
    isOver = true;
    expect(turns).toBeGreaterThan(50);
  });
});

describe("over real WebSockets", () => {
  test("[WI-6] a hundred streams each way carry their bytes, and both sides close cleanly", async () => {
    const { client, server } = await openSessions();
    const echoStream = async (session: YamuxSession, i: number): Promise<boolean> => {
      const stream = await session.open();
      const data = makePattern(1000 + i * 1777, i);
      const [echoed] = await Promise.all([readAll(stream), stream.write(data).then(() => stream.end())]);
      return Buffer.from(echoed).equals(data);
    };
    const echo = async (session: YamuxSession): Promise<void> => {
      for (let stream = await session.accept(); stream; stream = await session.accept()) {
        const accepted = stream;
        void (async () => {
          for await (const chunk of accepted) await accepted.write(chunk);
          await accepted.end();
        })();
      }
    };
    const echoes = [echo(client), echo(server)];
    const indices = Array.from({ length: 100 }, (_, i) => i);
    const results = await Promise.all(indices.flatMap((i) => [echoStream(client, i), echoStream(server, i)]));
    expect(results.every(Boolean)).toBe(true);
    client.close();
    expect(await server.closed).toBeUndefined();
    await Promise.all(echoes);
  });

  test("[WI-13] a call of 3 MiB is answered", async () => {
    const { client, server } = await openSessions();
    const router = new Map([["/svc/Echo", { kind: "unary" as const, run: async (request: Uint8Array) => request }]]);
    void serveSession(server, router, { clock: systemClock });
    const request = makePattern(3 * 1024 * 1024);
    expect(Buffer.from(await call(client, "/svc/Echo", request)).equals(request)).toBe(true);
    expect(await client.ping()).toBeGreaterThan(0);
  });

  test("[WI-3] a client that writes faster than the socket waits and loses nothing", async () => {
    const { client, server } = await openSessions();
    const data = makePattern(8 * 1024 * 1024);
    const stream = await client.open();
    const sent = stream.write(data).then(() => stream.end());
    const accepted = await server.accept();
    expect(Buffer.from(await readAll(accepted!)).equals(data)).toBe(true);
    await sent;
  });

  test("[WI-3] writers wait while the peer does not read its socket, and continue when it reads again", async () => {
    const opened = Promise.withResolvers<ByteStream>();
    const url = new URL(listen((stream) => opened.resolve(stream)));
    const socket: Socket = connect(Number(url.port), "127.0.0.1");
    cleanups.push(() => socket.destroy());
    let received = 0;
    socket.on("data", (bytes: Buffer) => {
      received += bytes.byteLength;
    });
    socket.write(upgradeRequest(url));
    const stream = await opened.promise;
    socket.pause();
    const message = new Uint8Array(64 * 1024);
    const total = 64 * 1024 * 1024;
    let written = 0;
    let hasResumed = false;
    while (written < total) {
      let isWaiting = true;
      const writing = stream.write(message).then(() => {
        isWaiting = false;
      });
      await Promise.resolve();
      await Promise.resolve();
      if (isWaiting && !hasResumed) {
        // All buffers are full, far below the total.
        expect(written).toBeLessThan(total / 2);
        hasResumed = true;
        socket.resume();
      }
      await writing;
      written += message.byteLength;
    }
    expect(hasResumed).toBe(true);
    const socketClosed = new Promise((resolve) => socket.once("close", resolve));
    stream.close();
    await socketClosed;
    expect(received).toBeGreaterThan(total);
  });

  test("[WI-8] a daemon that dies silently ends the server's session and its calls with a reason", async () => {
    const opened = Promise.withResolvers<YamuxSession>();
    const url = new URL(
      listen((stream) => opened.resolve(new YamuxSession(stream, { role: "server", clock: systemClock }))),
    );
    const socket: Socket = connect(Number(url.port), "127.0.0.1");
    socket.write(upgradeRequest(url));
    const session = await opened.promise;
    const answer = call(session, "/svc/Echo", new Uint8Array(0)).catch((error: unknown) => error);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.destroy();
    const failure = await session.closed;
    expect(failure).toMatchObject({ failure: "closed" });
    expect(failure?.message).toContain("1006");
    expect(await answer).toMatchObject({ failure: "closed" });
  });

  test("[WI-1] a refused connection, and one that the server aborts, are distinguished from a clean end", async () => {
    const refused = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status: 401 }) });
    cleanups.push(() => refused.stop(true));
    await expect(
      createWebSocketStream(new WebSocket(`ws://127.0.0.1:${refused.port}/`), systemClock),
    ).rejects.toMatchObject({ failure: "closed" });
    const url = listen((stream) => stream.close(1011, "gone mad"));
    const stream = await createWebSocketStream(new WebSocket(url), systemClock);
    expect(await stream.closed).toMatchObject({
      failure: "closed",
      message: "The connection was closed: 1011 gone mad",
    });
    await expect(stream.read()).rejects.toMatchObject({ failure: "closed" });
  });
});
