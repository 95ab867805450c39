// WebSockets of apps through the server, and all open connections that end when access is revoked.
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

/** Maximum message size of an app and of its user in bytes; the setting is in MiB. */
const MAX_APP_MESSAGE_BYTES = 32 * 1024 * 1024;
const MAX_MESSAGE_BYTES = MAX_APP_MESSAGE_BYTES / 4;
/** Bytes sent to a client that does not read. */
const FLOOD = 96 * 1024 * 1024;

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

/** Opens a client WebSocket with its messages in order. */
const connect = async (path: string, headers: Record<string, string>, protocols?: string[]) => {
  const url = new URL(path, world.server.url);
  url.protocol = "ws:";
  const socket = new WebSocket(url, { headers, protocols } as never);
  socket.binaryType = "arraybuffer";
  const waiting: unknown[] = [];
  let wake = (): void => {};
  socket.onmessage = ({ data }) => {
    waiting.push(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
    wake();
  };
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.onclose = ({ code, reason }) => resolve({ code, reason });
  });
  await new Promise<void>((resolve, reject) => {
    socket.onopen = () => resolve();
    socket.onerror = () => reject(new Error("refused"));
  });
  const nextMessage = async (): Promise<unknown> => {
    while (waiting.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return waiting.shift();
  };
  const hello = JSON.parse((await nextMessage()) as string) as { path: string; headers: Record<string, string> };
  return { socket, next: nextMessage, closed, hello };
};
const withToken = (token: string | undefined) => ({ "Service-Session-Token": token ?? "" });
/** Resolves when the figure no longer changes. */
const steadily = async (figure: () => number): Promise<void> => {
  let seen = [Number.NaN];
  await until(() => {
    seen = [figure(), ...seen.slice(0, 9)];
    return seen.length === 10 && new Set(seen).size === 1;
  });
};
const getConnectError = (path: string, headers: Record<string, string>) =>
  connect(path, headers).then(
    () => "opened",
    (error: Error) => error.message,
  );

describe("a WebSocket", () => {
  test("[AX-10] carries texts and bytes both ways, small and large, whole and in order", async () => {
    const { socket, next, hello } = await connect(world.path("mine", "/chat?room=1"), withToken(world.token));
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

  test("[AX-10] keeps the chosen protocol, and passes each side's close code and reason to the other", async () => {
    const { socket, closed } = await connect(world.path("mine", "/"), withToken(world.token), ["one", "two"]);
    expect(socket.protocol).toBe("one");
    socket.send("leave");
    expect(await closed).toEqual({ code: 4001, reason: "as you wish" });
  });

  test("[AX-10] that the app refuses is refused with the app's own response", async () => {
    const answer = await world.get(world.path("mine", "/refuse"), {
      token: world.token,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    });
    expect([answer.status, await answer.text()]).toEqual([418, "no sockets here"]);
  });

  test("[AX-10] delivers every message of a hundred megabytes from an app that does not wait", async () => {
    const { socket, next } = await connect(world.path("mine", "/"), withToken(world.token));
    socket.send("send 400 262144");
    let size = 0;
    while (size < 400 * 262_144) size += ((await next()) as Uint8Array).byteLength;
    expect(size).toBe(400 * 262_144);
    socket.close();
  });

  test("[AX-10] carries messages of eight megabytes both ways", async () => {
    const { socket, next } = await connect(world.path("mine", "/"), withToken(world.token));
    const long = new Uint8Array(MAX_MESSAGE_BYTES).map((_, i) => i % 251);
    for (const sent of [long, "ä".repeat(MAX_MESSAGE_BYTES / 2), long]) {
      socket.send(sent);
      expect(Bun.deepEquals(await next(), sent)).toBe(true);
    }
    socket.close();
  });

  test("[AX-10] closes with 1009 when an app's message is longer than app_message_mb, or a user's than a quarter of it", async () => {
    const sending = await connect(world.path("mine", "/"), withToken(world.token));
    sending.socket.send(new Uint8Array(MAX_MESSAGE_BYTES + 1));
    expect((await sending.closed).code).toBe(1009);
    const receiving = await connect(world.path("mine", "/"), withToken(world.token));
    receiving.socket.send(`send 1 ${MAX_APP_MESSAGE_BYTES + 1}`);
    expect(await receiving.closed).toEqual({
      code: 1009,
      reason: "the app sent a message that is longer than app_message_mb",
    });
  });

  test("[AX-28] anonymous visitors have a limited number of sockets, of which one app can use three quarters, and can reload", async () => {
    // The longer a message may be, the fewer sockets there are.
    const env = { SLIPWAY_APP_MESSAGE_MB: "1024" };
    await using small = await startAppWorld({
      env,
      apps: (port) => [{ slug: "open", url: `http://localhost:${port}`, share: "public" }],
    });
    const visitors: RawConnection[] = [];
    const visit = async (headers: Record<string, string> = {}): Promise<string> => {
      const visitor = new RawConnection(small.server.url);
      visitors.push(visitor);
      visitor.send(handshake(small.path("open"), { Host: small.server.url.host, ...headers }));
      return visitor.until((text) => text.includes("\r\n\r\n"));
    };
    let last = await visit();
    while (last.startsWith("HTTP/1.1 101")) last = await visit();
    expect(visitors.length).toBeGreaterThanOrEqual(6);
    expect(last).toStartWith("HTTP/1.1 503");
    expect(await visitors.at(-1)?.until((text) => text.includes("}"))).toContain(
      "Too many visitors without an account",
    );
    expect(await visit(withToken(small.token))).toStartWith("HTTP/1.1 101");
    const open = visitors.slice(0, -2);
    const limit = open.length;
    let reloads = 0;
    do {
      const one = open.shift();
      one?.send(frame(8, Buffer.from([3, 233])));
      await one?.closed;
      last = await visit();
      open.push(visitors.at(-1) as RawConnection);
      reloads += 1;
    } while (last.startsWith("HTTP/1.1 101"));
    // As many closed ones can have an unfinished message, which the runtime keeps until their clients disconnect.
    expect(reloads).toBe(limit);
    for (const one of visitors) one[Symbol.dispose]();
  });

  test("[AX-10] applies backpressure to an app that does not read, in bounded memory, and loses nothing", async () => {
    // Accepts the WebSocket, then reads nothing until the test resumes its socket.
    const upgraded = Promise.withResolvers<Bun.Socket>();
    let read = 0;
    using app = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket, chunk) {
          read += chunk.byteLength;
          const key = /sec-websocket-key: (.*)\r\n/i.exec(chunk.toString("latin1", 0, 4096))?.[1];
          if (key === undefined) return;
          socket.pause();
          read = 0;
          const accept = new Bun.CryptoHasher("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
          const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept.digest("base64")}\r\n\r\n`;
          socket.write(Buffer.concat([Buffer.from(head), Buffer.from([0x81, 2]), Buffer.from("{}")]));
          upgraded.resolve(socket);
        },
      },
    });
    const { socket, closed } = await connect(world.path(String(app.port), "/"), withToken(world.token));
    const reading = await upgraded.promise;
    const before = process.memoryUsage.rss();
    const message = new Uint8Array(64 * 1024).fill(7);
    for (let sent = 0; sent < FLOOD; sent += message.byteLength) socket.send(message);
    await steadily(() => socket.bufferedAmount);
    // All buffers between the two sides, of the server and the system, hold at most this much.
    expect(FLOOD - socket.bufferedAmount).toBeLessThan(48 * 1024 * 1024);
    // The client is also in this process; its pending data does not count as the server's.
    expect(process.memoryUsage.rss() - before - socket.bufferedAmount).toBeLessThan(160 * 1024 * 1024);
    // Other requests are not delayed.
    expect((await world.get(world.path("mine", "/x"), { token: world.token })).status).toBe(200);
    reading.resume();
    await until(() => read >= FLOOD);
    expect([socket.bufferedAmount, socket.readyState]).toEqual([0, WebSocket.OPEN]);
    reading.terminate();
    expect((await closed).code).toBe(1011);
  });

  test("[AX-10] waits for a client that does not read, in bounded memory, and sends everything once it reads", async () => {
    using connection = new RawConnection(world.server.url);
    connection.send(handshake(world.path("mine", "/"), withToken(world.token)));
    await connection.until((text) => text.includes("}"));
    connection.socket.pause();
    const before = process.memoryUsage.rss();
    connection.send(frame(1, `send ${FLOOD / 262_144} 262144`));
    await steadily(() => process.memoryUsage.rss() >> 20);
    expect(process.memoryUsage.rss() - before).toBeLessThan(48 * 1024 * 1024);
    const had = connection.received.length;
    connection.socket.resume();
    await connection.until((text) => text.length - had >= FLOOD);
  });

  test("[AX-10] a decompression bomb ends its own connection", async () => {
    using connection = new RawConnection(world.server.url);
    const requested = { ...withToken(world.token), "Sec-WebSocket-Extensions": "permessage-deflate" };
    connection.send(handshake(world.path("mine", "/"), requested));
    expect(await connection.until((text) => text.includes("\r\n\r\n"))).toStartWith("HTTP/1.1 101");
    const before = process.memoryUsage.rss();
    connection.send(frame(2, deflateRawSync(Buffer.alloc(50 << 20, 97)), { reserved: 0x40 }));
    await connection.until((text) => parseCloseCode(text) !== undefined);
    expect(process.memoryUsage.rss() - before).toBeLessThan(80 << 20);
    expect((await world.get(world.path("mine", "/x"), { token: world.token })).status).toBe(200);
  });

  test("[AX-4] from a cross-site page is refused with the cookie, and passes from its own page or from a program", async () => {
    const cookie = `service_session_token=${world.token}`;
    const { origin, host } = world.server.url;
    for (const foreign of [
      "https://evil.example",
      "null",
      `http://${host}.evil.example`,
      `http://x${host}`,
      `https://${host}`,
    ]) {
      expect([foreign, await getConnectError(world.path("mine"), { cookie, origin: foreign })]).toEqual([
        foreign,
        expect.not.stringMatching("opened"),
      ]);
    }
    const ownConnection = await connect(world.path("mine"), { cookie, origin });
    ownConnection.socket.close();
    const outsider = await connect(world.path("open"), { origin: "https://anybody.example" });
    outsider.socket.close();
    expect(await getConnectError(world.path("mine"), { origin })).not.toBe("opened");
  });
});

describe("open connections", () => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  /** Opens a WebSocket and an event stream as this caller; `ended` resolves when both have ended. */
  const openBoth = async (app: string, token: string | undefined) => {
    const { socket, closed } = await connect(world.path(app), withToken(token));
    const response = await world.get(world.path(app, "/events"), { token });
    const reader = response.body?.getReader();
    await reader?.read();
    stops.push(() => socket.close());
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
  const LOST = [{ code: 1008, reason: expect.stringMatching(/^(you may no longer|the session has ended)/) }, "cut"];

  test("[AX-9] end when the key is revoked", async () => {
    const { token } = await seedUser(world.server, { organization_id: world.shared.organization_id });
    const client = new Client(world.server.url, token);
    const { ended } = await openBoth("all", token);
    await client.post("/api/v2/users/logout");
    expect(await ended).toEqual(LOST as never);
  });

  test("[AX-9] end when the port is no longer shared, also for anonymous visitors, and stay for people who use the workspace", async () => {
    const share = { agent_name: "dev", port: world.app.port, protocol: "http" };
    await world.owner.post(`${world.shared.path}/port-share`, { ...share, share_level: "public" });
    const port = String(world.app.port);
    const outsider = await openBoth(port, undefined);
    const member = await openBoth(port, world.shared.clients.member.token);
    const ownConnection = await connect(world.path(port), withToken(world.token));
    await world.owner.post(`${world.shared.path}/port-share`, { ...share, share_level: "authenticated" });
    expect(await outsider.ended).toEqual(LOST as never);
    await world.owner.fetch("DELETE", `${world.shared.path}/port-share`, { agent_name: "dev", port: world.app.port });
    expect(await member.ended).toEqual(LOST as never);
    ownConnection.socket.send("still here");
    expect(await ownConnection.next()).toBe("still here");
    ownConnection.socket.close();
  });

  test("[AX-9] end when the workspace is no longer shared", async () => {
    const { ended } = await openBoth("mine", world.shared.clients["shared use"].token);
    await world.owner.patch(`${world.shared.path}/acl`, { user_roles: { [world.shared.idOf("uma")]: "" } });
    expect(await ended).toEqual(LOST as never);
  });
});
