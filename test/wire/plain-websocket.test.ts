// The WebSocket client for plain TCP, with Bun's server and with servers that misbehave.
import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { ByteStream } from "#src/wire/byte-stream.ts";
import { connectPlainWebSocket, UpgradeRefusedError } from "#src/wire/plain-websocket.ts";
import { WireError } from "#src/wire/wire-error.ts";
import { makePattern } from "./support.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type CloseInfo = { code: number; reason: string };

/** Starts Bun's own WebSocket server, which passes messages to `message`. */
const listen = (
  message: (ws: Bun.ServerWebSocket, data: Buffer) => void,
  open = (_: Bun.ServerWebSocket): void => {},
) => {
  const closed = Promise.withResolvers<CloseInfo>();
  const requests: Request[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, self) => {
      requests.push(request);
      return self.upgrade(request) ? undefined : new Response("no", { status: 400 });
    },
    websocket: {
      open,
      message: (ws, data) => message(ws, data as Buffer),
      close: (_, code, reason) => closed.resolve({ code, reason }),
    },
  });
  cleanups.push(() => server.stop(true));
  return { url: new URL(`ws://127.0.0.1:${server.port}/way?q=1`), closed: closed.promise, requests };
};

/** Starts a TCP server that answers the upgrade with `answer`, then sends `messages`. */
const startRawServer = (answer: (key: string) => string, messages: readonly Uint8Array[] = []): URL => {
  const received = new WeakMap<object, string>();
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, chunk) {
        const before = received.get(socket) ?? "";
        received.set(socket, before + chunk.toString("latin1"));
        if (before.includes("\r\n\r\n") || !received.get(socket)?.includes("\r\n\r\n")) return;
        const key = /sec-websocket-key: (.*)\r\n/i.exec(received.get(socket) ?? "")?.[1] ?? "";
        socket.write(answer(key));
        for (const bytes of messages) socket.write(bytes);
      },
    },
  });
  cleanups.push(() => server.stop(true));
  return new URL(`ws://127.0.0.1:${server.port}/`);
};

const acceptResponse = (key: string): string => {
  const accept = new Bun.CryptoHasher("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
};

const connect = (url: URL, signal?: AbortSignal): Promise<ByteStream> =>
  connectPlainWebSocket({ url, headers: { "X-Token": "secret" }, clock: systemClock, signal });

const catchError = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  );

/** Reads this many bytes. */
const readBytes = async (stream: ByteStream, count: number): Promise<Buffer> => {
  const parts: Uint8Array[] = [];
  for (let size = 0; size < count; ) {
    const part = await stream.read();
    if (!part) break;
    parts.push(part);
    size += part.byteLength;
  }
  return Buffer.concat(parts);
};

describe("a plain WebSocket", () => {
  test("[WI-17] carries messages of every length both ways, with its headers and path", async () => {
    const { url, requests } = listen((ws, data) => void ws.sendBinary(data));
    const stream = await connect(url);
    for (const size of [1, 125, 126, 65_535, 65_536, 300_000]) {
      const data = makePattern(size);
      await stream.write(data.subarray(0, size >> 1), data.subarray(size >> 1));
      expect((await readBytes(stream, size)).equals(data)).toBe(true);
    }
    expect(requests[0]?.headers.get("x-token")).toBe("secret");
    expect(new URL(requests[0]?.url ?? "").search).toBe("?q=1");
    stream.close();
  });

  test("[WI-17] waits while the server does not read, then continues without losing a byte", async () => {
    let size = 0;
    const receivedAll = Promise.withResolvers<void>();
    const total = 24 * 1024 * 1024;
    const hasher = new Bun.CryptoHasher("sha256");
    const { url } = listen((_, data) => {
      hasher.update(data);
      size += data.byteLength;
      if (size === total) receivedAll.resolve();
    });
    const stream = await connect(url);
    const expected = new Bun.CryptoHasher("sha256");
    const shared = new Uint8Array(100_000);
    for (let sent = 0, i = 0; sent < total; i += 1) {
      const part = shared.subarray(0, Math.min(shared.byteLength, total - sent)).fill(i);
      expected.update(part);
      sent += part.byteLength;
      // The loop reuses the buffer, which is safe once the write has resolved.
      await stream.write(part);
    }
    await receivedAll.promise;
    expect(hasher.digest("hex")).toBe(expected.digest("hex"));
    stream.close();
  });

  test("[WI-17] sends the code and reason of its close, and receives the server's", async () => {
    const silentServer = listen(() => {});
    const stream = await connect(silentServer.url);
    stream.close(1002, "enough");
    expect(await silentServer.closed).toEqual({ code: 1002, reason: "enough" });
    const refusingServer = listen((ws) => ws.close(1008, "go away"));
    const refused = await connect(refusingServer.url);
    await refused.write(makePattern(1));
    expect((await refused.closed)?.message).toContain("1008 go away");
    const closingServer = listen((ws) => ws.close(1000, ""));
    const closed = await connect(closingServer.url);
    await closed.write(makePattern(1));
    expect(await closed.closed).toBeUndefined();
  });

  test("[WI-17] answers pings with their payload", async () => {
    const ponged = Promise.withResolvers<string>();
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request, self) => (self.upgrade(request) ? undefined : new Response("no")),
      websocket: {
        open: (ws) => void ws.ping("still there"),
        message: () => {},
        pong: (_, data) => ponged.resolve(data.toString()),
      },
    });
    cleanups.push(() => server.stop(true));
    const stream = await connect(new URL(`http://127.0.0.1:${server.port}/`));
    expect(await ponged.promise).toBe("still there");
    stream.close();
  });

  test("[WI-17] accepts frames that arrive in pieces, with control frames in between", async () => {
    const frames = Buffer.from([0x02, 2, 1, 2, 0x89, 1, 9, 0x80, 126, 0, 1, 3, 0x82, 0, 0x82, 1, 4, 0x88, 2, 3, 0xe8]);
    const url = startRawServer(
      acceptResponse,
      Array.from(frames, (byte) => Uint8Array.of(byte)),
    );
    const stream = await connect(url);
    expect([...(await readBytes(stream, 4))]).toEqual([1, 2, 3, 4]);
    expect(await stream.closed).toBeUndefined();
  });
});

describe("a misbehaving server", () => {
  test("[WI-17] a refused upgrade reports its status", async () => {
    const failure = await catchError(
      connect(startRawServer(() => "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")),
    );
    expect(failure).toBeInstanceOf(UpgradeRefusedError);
    expect((failure as UpgradeRefusedError).status).toBe(401);
  });

  const invalidResponses: [string, (key: string) => string][] = [
    ["a response to another key", () => acceptResponse("another")],
    [
      "an unrequested extension",
      (key) => acceptResponse(key).replace("\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
    ],
    ["a response that is not HTTP", () => "SSH-2.0-hello\r\n\r\n"],
    ["an endless head", () => `HTTP/1.1 101 OK\r\nx: ${"y".repeat(40_000)}`],
  ];
  test.each(invalidResponses)("[WI-17] %s does not open a connection", async (_, answer) => {
    const failure = await catchError(connect(startRawServer(answer)));
    expect(failure).toBeInstanceOf(WireError);
    expect((failure as WireError).failure).toBe("protocol");
  });

  test("[WI-17] fails without a listener, and when the caller gives up", async () => {
    const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { port } = listener;
    const controller = new AbortController();
    const pending = catchError(connect(new URL(`ws://127.0.0.1:${port}/`), controller.signal));
    controller.abort();
    expect(((await pending) as WireError).failure).toBe("closed");
    listener.stop(true);
    expect(((await catchError(connect(new URL(`ws://127.0.0.1:${port}/`)))) as WireError).failure).toBe("closed");
  });

  const frames: [string, number[]][] = [
    ["a masked frame", [0x82, 0x81, 0, 0, 0, 0, 1]],
    ["a reserved bit", [0xc2, 1, 1]],
    ["a reserved opcode", [0x83, 1, 1]],
    ["a continuation of nothing", [0x80, 1, 1]],
    ["a message within a message", [0x02, 1, 1, 0x02, 1, 1]],
    ["a long control frame", [0x89, 126, 0, 126]],
    ["a control frame in parts", [0x09, 1, 1]],
    ["a truncated close frame", [0x88, 1, 3]],
    ["a length of 64 bits", [0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0]],
  ];
  test.each(frames)("[WI-17] %s ends the connection with a reason", async (_, bytes) => {
    const stream = await connect(startRawServer(acceptResponse, [Uint8Array.from(bytes)]));
    expect((await stream.closed)?.failure).toBe("protocol");
  });

  test("[WI-1] a text message and a lost connection end the stream with a reason", async () => {
    const textStream = await connect(startRawServer(acceptResponse, [Uint8Array.of(0x81, 1, 65)]));
    expect((await textStream.closed)?.failure).toBe("protocol");
    const { url } = listen((ws) => ws.terminate());
    const lostStream = await connect(url);
    await lostStream.write(makePattern(1));
    expect((await lostStream.closed)?.failure).toBe("closed");
  });
});
