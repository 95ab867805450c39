// WebSockets of apps through the server, and open connections that end when access is revoked.
import { afterEach, describe, expect, test } from "bun:test";
import { deflateRawSync } from "node:zlib";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { frame, parseCloseCode } from "../edge/frames.ts";
import { handshake } from "../edge/raw-http.ts";
import { startAppWorld } from "./app-world.ts";

/** The maximum message sizes in bytes of an app and of its user. The setting is in MiB. */
const MAX_APP_MESSAGE_BYTES = 32 * 1024 * 1024;
const MAX_MESSAGE_BYTES = MAX_APP_MESSAGE_BYTES / 4;
/** The number of bytes that the tests send to a peer that does not read. */
const FLOOD_BYTES = 96 * 1024 * 1024;

const world = await forFile(
  startAppWorld({
    env: { SLIPWAY_APP_MESSAGE_MB: "32" },
    apps: (port) => [
      { slug: "mine", url: `http://localhost:${port}` },
      { slug: "all", url: `http://localhost:${port}`, share: "authenticated" },
      { slug: "open", url: `http://localhost:${port}`, share: "public" },
    ],
  }),
);

/** Opens a WebSocket as a client. `next` returns its messages in order. */
const connect = async (path: string, headers: Record<string, string>, protocols?: string[]) => {
  const url = new URL(path, world.server.url);
  url.protocol = "ws:";
  const socket = new WebSocket(url, { headers, protocols } as never);
  socket.binaryType = "arraybuffer";
  const messages: unknown[] = [];
  let notify = (): void => {};
  socket.onmessage = ({ data }) => {
    messages.push(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
    notify();
  };
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = ({ code, reason }) => resolve({ code, reason });
  });
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error("refused"));
  });
  const nextMessage = async (): Promise<unknown> => {
    while (messages.length === 0) {
      await new Promise<void>((resolve) => {
        wake: notify = resolve;
      });
    }
    return messages.shift();
  };
  const hello = JSON.parse((await nextMessage()) as string) as { path: string; headers: Record<string, string> };
  return { socket, next: nextMessage, closed, hello };
};
const createTokenHeaders = (token: string | undefined) => ({ "Service-Session-Token": token ?? "" });
/** Waits until the value no longer changes. */
const awaitSteady = async (read: () => number): Promise<void> => {
  let recentValues = [Number.NaN];
  await until(() => {
    seen: recentValues = [read(), ...recentValues.slice(0, 9)];
    return recentValues.length === 10 && new Set(recentValues).size === 1;
  });
};
const getConnectError = (path: string, headers: Record<string, string>) =>
  connect(path, headers).then(
    () => "opened",
    (error: Error) => error.message,
  );

describe("a WebSocket", () => {
  test("[AX-10] transfers texts and bytes of any size both ways, complete and in order", async () => {
    const { socket, next, hello } = await connect(world.path("mine", "/chat?room=1"), createTokenHeaders(world.token));
    expect(hello.path).toBe("/chat?room=1");
    expect(JSON.stringify(hello.headers)).not.toContain(world.token);
    expect(hello.headers["x-forwarded-prefix"]).toBe("/@ada/dev.dev/apps/mine");
    const sent: (string | Uint8Array)[] = [
      "",
      "häß ✓ 𝄞",
      "x".repeat(125),
      "y".repeat(126),
      "z".repeat(65_536),
      "w".repeat(3_000_000),
    ];
    for (const size of [0, 1, 125, 126, 65_535, 65_536, 2_500_000])
      sent.push(new Uint8Array(size).map((_, i) => i % 253));
    for (const message of sent) socket.send(message as string);
    for (const message of sent) expect(Bun.deepEquals(await next(), message)).toBe(true);
    socket.send("ping");
    expect(await next()).toBe("pong are you there");
    socket.close(1000, "done");
  });

  test("[AX-10] keeps the protocol that the app selects, and the app's close code and reason", async () => {
    const { socket, closed } = await connect(world.path("mine", "/"), createTokenHeaders(world.token), ["one", "two"]);
    expect(socket.protocol).toBe("one");
    socket.send("leave");
    expect(await closed).toEqual({ code: 4001, reason: "as you wish" });
  });

  test("[AX-10] that the app refuses gets the app's own response", async () => {
    const response = await world.get(world.path("mine", "/refuse"), {
      token: world.token,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    });
    expect([response.status, await response.text()]).toEqual([418, "no sockets here"]);
  });

  test("[AX-10] delivers a hundred megabytes of messages from an app that does not wait", async () => {
    const { socket, next } = await connect(world.path("mine", "/"), createTokenHeaders(world.token));
    socket.send("send 400 262144");
    let size = 0;
    while (size < 400 * 262_144) size += ((await next()) as Uint8Array).byteLength;
    expect(size).toBe(400 * 262_144);
    socket.close();
  });

  test("[AX-10] transfers messages of eight megabytes both ways", async () => {
    const { socket, next } = await connect(world.path("mine", "/"), createTokenHeaders(world.token));
    const longMessage = new Uint8Array(MAX_MESSAGE_BYTES).map((_, i) => i % 251);
    for (const message of [longMessage, "ä".repeat(MAX_MESSAGE_BYTES / 2), longMessage]) {
      socket.send(message);
      expect(Bun.deepEquals(await next(), message)).toBe(true);
    }
    socket.close();
  });

  test("[AX-10] closes with 1009 if a message of the app exceeds app_message_mb, or one of the user a quarter of it", async () => {
    const sender = await connect(world.path("mine", "/"), createTokenHeaders(world.token));
    sender.socket.send(new Uint8Array(MAX_MESSAGE_BYTES + 1));
    expect((await sender.closed).code).toBe(1009);
    const receiver = await connect(world.path("mine", "/"), createTokenHeaders(world.token));
    receiver.socket.send(`send 1 ${MAX_APP_MESSAGE_BYTES + 1}`);
    expect(await receiver.closed).toEqual({
      code: 1009,
      reason: "the app sent a message that is longer than app_message_mb",
    });
  });

  test("[AX-28] is limited in number for anonymous visitors of an app, who can reload", async () => {
    // A larger maximum message size lowers the number of sockets.
    const env = { SLIPWAY_APP_MESSAGE_MB: "1024" };
    await using limitedWorld = await startAppWorld({
      env,
      apps: (port) => [{ slug: "open", url: `http://localhost:${port}`, share: "public" }],
    });
    const visitors: RawConnection[] = [];
    const openVisitor = async (headers: Record<string, string> = {}): Promise<string> => {
      const visitor = new RawConnection(limitedWorld.server.url);
      visitors.push(visitor);
      visitor.send(handshake(limitedWorld.path("open"), { Host: limitedWorld.server.url.host, ...headers }));
      return visitor.until((text) => text.includes("\r\n\r\n"));
    };
    let response = await openVisitor();
    while (response.startsWith("HTTP/1.1 101")) response = await openVisitor();
    expect(visitors.length).toBeGreaterThanOrEqual(6);
    expect(response).toStartWith("HTTP/1.1 503");
    expect(await visitors.at(-1)?.until((text) => text.includes("}"))).toContain(
      "Too many visitors without an account",
    );
    expect(await openVisitor(createTokenHeaders(limitedWorld.token))).toStartWith("HTTP/1.1 101");
    const openVisitors = visitors.slice(0, -2);
    const limit = openVisitors.length;
    let reloads = 0;
    do {
      const visitor = openVisitors.shift();
      visitor?.send(frame(8, Buffer.from([3, 233])));
      await visitor?.closed;
      response = await openVisitor();
      openVisitors.push(visitors.at(-1) as RawConnection);
      reloads += 1;
    } while (response.startsWith("HTTP/1.1 101"));
    // Closed sockets count with the same limit, because the runtime keeps their unfinished messages until the clients disconnect.
    expect(reloads).toBe(limit);
    for (const visitor of visitors) visitor[Symbol.dispose]();
  });

  test("[AX-10] applies backpressure if the app does not read, with limited memory and without losses", async () => {
    // The app accepts the WebSocket, and then reads nothing until the test resumes its socket.
    const appSocket = Promise.withResolvers<Bun.Socket>();
    let readBytes = 0;
    using app = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket, chunk) {
          readBytes += chunk.byteLength;
          const key = /sec-websocket-key: (.*)\r\n/i.exec(chunk.toString("latin1", 0, 4096))?.[1];
          if (key === undefined) return;
          socket.pause();
          readBytes = 0;
          const accept = new Bun.CryptoHasher("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
          const responseHead = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest("base64")}\r\n\r\n`;
          socket.write(Buffer.concat([Buffer.from(responseHead), Buffer.from([0x81, 2]), Buffer.from("{}")]));
          appSocket.resolve(socket);
        },
      },
    });
    const { socket, closed } = await connect(world.path(String(app.port), "/"), createTokenHeaders(world.token));
    const reader = await appSocket.promise;
    const before = process.memoryUsage.rss();
    const message = new Uint8Array(64 * 1024).fill(7);
    for (let sentBytes = 0; sentBytes < FLOOD_BYTES; sentBytes += message.byteLength) socket.send(message);
    await awaitSteady(() => socket.bufferedAmount);
    // The buffers of the server and the system between the two sides contain at most this much.
    expect(FLOOD_BYTES - socket.bufferedAmount).toBeLessThan(48 * 1024 * 1024);
    // The client is also in this process; its pending data does not count as the server's.
    expect(process.memoryUsage.rss() - before - socket.bufferedAmount).toBeLessThan(160 * 1024 * 1024);
    // The server still handles other requests.
    expect((await world.get(world.path("mine", "/x"), { token: world.token })).status).toBe(200);
    reader.resume();
    await until(() => readBytes >= FLOOD_BYTES);
    expect([socket.bufferedAmount, socket.readyState]).toEqual([0, WebSocket.OPEN]);
    reader.terminate();
    expect((await closed).code).toBe(1011);
  });

  test("[AX-10] waits for a client that does not read, with limited memory, and then sends everything", async () => {
    using connection = new RawConnection(world.server.url);
    connection.send(handshake(world.path("mine", "/"), createTokenHeaders(world.token)));
    await connection.until((text) => text.includes("}"));
    connection.socket.pause();
    const before = process.memoryUsage.rss();
    connection.send(frame(1, `send ${FLOOD_BYTES / 262_144} 262144`));
    await awaitSteady(() => process.memoryUsage.rss() >> 20);
    expect(process.memoryUsage.rss() - before).toBeLessThan(48 * 1024 * 1024);
    const receivedBefore = connection.received.length;
    connection.socket.resume();
    await connection.until((text) => text.length - receivedBefore >= FLOOD_BYTES);
  });

  test("[AX-10] is closed if the client sends a decompression bomb", async () => {
    using connection = new RawConnection(world.server.url);
    const headers = { ...createTokenHeaders(world.token), "Sec-WebSocket-Extensions": "permessage-deflate" };
    connection.send(handshake(world.path("mine", "/"), headers));
    expect(await connection.until((text) => text.includes("\r\n\r\n"))).toStartWith("HTTP/1.1 101");
    const before = process.memoryUsage.rss();
    connection.send(frame(2, deflateRawSync(Buffer.alloc(50 << 20, 97)), { reserved: 0x40 }));
    await connection.until((text) => parseCloseCode(text) !== undefined);
    expect(process.memoryUsage.rss() - before).toBeLessThan(80 << 20);
    expect((await world.get(world.path("mine", "/x"), { token: world.token })).status).toBe(200);
  });

  test("[AX-4] with the cookie is rejected from a cross-site page, and accepted from its own page or a program", async () => {
    const cookie = `service_session_token=${world.token}`;
    const { origin, host } = world.server.url;
    for (const foreignOrigin of [
      "https://evil.example",
      "null",
      `http://${host}.evil.example`,
      `http://x${host}`,
      `https://${host}`,
    ]) {
      expect([foreignOrigin, await getConnectError(world.path("mine"), { cookie, origin: foreignOrigin })]).toEqual([
        foreignOrigin,
        expect.not.stringMatching("opened"),
      ]);
    }
    const ownConnection = await connect(world.path("mine"), { cookie, origin });
    ownConnection.socket.close();
    const anonymousConnection = await connect(world.path("open"), { origin: "https://anybody.example" });
    anonymousConnection.socket.close();
    expect(await getConnectError(world.path("mine"), { origin })).not.toBe("opened");
  });
});

describe("open connections", () => {
  const cleanups: (() => void)[] = [];
  afterEach(() => {
    for (const cleanup of cleanups.splice(0)) cleanup();
  });

  /** Opens a WebSocket and an event stream as this caller. `ended` resolves when both have ended. */
  const openBoth = async (app: string, token: string | undefined) => {
    const { socket, closed } = await connect(world.path(app), createTokenHeaders(token));
    const response = await world.get(world.path(app, "/events"), { token });
    const reader = response.body?.getReader();
    await reader?.read();
    cleanups.push(() => socket.close());
    const readToEnd = async (): Promise<string> => {
      try {
        while (!(await reader?.read())?.done);
        return "ended";
      } catch {
        return "cut";
      }
    };
    return { ended: Promise.all([closed, readToEnd()]) };
  };
  const ACCESS_LOST = [
    { code: 1008, reason: expect.stringMatching(/^(you may no longer|the session has ended)/) },
    "cut",
  ];

  test("[AX-9] end when the key is revoked", async () => {
    const { token } = await seedUser(world.server, { organization_id: world.shared.organization_id });
    const client = new Client(world.server.url, token);
    const { ended } = await openBoth("all", token);
    await client.post("/api/v2/users/logout");
    expect(await ended).toEqual(ACCESS_LOST as never);
  });

  test("[AX-9] end when the port is no longer shared, except those of people who can use the workspace", async () => {
    const share = { agent_name: "dev", port: world.app.port, protocol: "http" };
    await world.owner.post(`${world.shared.path}/port-share`, { ...share, share_level: "public" });
    const port = String(world.app.port);
    const anonymous = await openBoth(port, undefined);
    const member = await openBoth(port, world.shared.clients.member.token);
    const ownConnection = await connect(world.path(port), createTokenHeaders(world.token));
    await world.owner.post(`${world.shared.path}/port-share`, { ...share, share_level: "authenticated" });
    expect(await anonymous.ended).toEqual(ACCESS_LOST as never);
    await world.owner.fetch("DELETE", `${world.shared.path}/port-share`, { agent_name: "dev", port: world.app.port });
    expect(await member.ended).toEqual(ACCESS_LOST as never);
    ownConnection.socket.send("still here");
    expect(await ownConnection.next()).toBe("still here");
    ownConnection.socket.close();
  });

  test("[AX-9] end when the workspace is no longer shared", async () => {
    const { ended } = await openBoth("mine", world.shared.clients["shared use"].token);
    await world.owner.patch(`${world.shared.path}/acl`, { user_roles: { [world.shared.idOf("uma")]: "" } });
    expect(await ended).toEqual(ACCESS_LOST as never);
  });
});
