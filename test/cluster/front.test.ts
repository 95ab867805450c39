// What a spare passes on, over real sockets: requests, streams and WebSockets, to a server that plays the active node.
import { afterEach, describe, expect, test } from "bun:test";
import type { Server, Socket } from "bun";
import { systemClock } from "#base/clock.ts";
import { Front } from "#src/cluster/front.ts";
import { addressNamedBy, NODE_HEADER } from "#src/cluster/head.ts";
import { until } from "#test/support/until.ts";

const TOKEN = "the-token-of-the-nodes";
const BIG = 64 * 1024;
const MESSAGES = 1600;

const open: { stop(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
});

type Seen = { sent: number; blocked: boolean };

/** An active node that says what it has heard, streams, echoes, and sends more than a reader takes. */
const activeNode = () => {
  const seen: Seen = { sent: 0, blocked: false };
  const pump = (socket: Bun.ServerWebSocket<unknown>): void => {
    seen.blocked = false;
    while (seen.sent < MESSAGES) {
      const message = new Uint8Array(BIG);
      new DataView(message.buffer).setUint32(0, seen.sent);
      const result = socket.send(message);
      if (result === 0) return;
      seen.sent++;
      if (result === -1) {
        seen.blocked = true;
        return;
      }
    }
  };
  const server: Server<unknown> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, own) {
      const { pathname } = new URL(request.url);
      const named = addressNamedBy(request.headers.get(NODE_HEADER), (given) => given === TOKEN);
      if (pathname === "/socket" && own.upgrade(request, { data: undefined })) return;
      if (pathname === "/slow") {
        return new Response(
          (async function* () {
            for (let i = 0; i < 3; i++) {
              yield `data: ${i}\n\n`;
              await systemPause(30);
            }
          })() as never,
          { headers: { "content-type": "text/event-stream" } },
        );
      }
      return Response.json({ pathname, named, raw: request.headers.get(NODE_HEADER), body: await request.text() });
    },
    websocket: {
      backpressureLimit: 1024 * 1024,
      message: (socket, text) => (text === "pump" ? pump(socket) : void socket.send(text)),
      drain: pump,
    },
  });
  open.push({ stop: () => void server.stop(true) });
  return { port: server.port as number, seen };
};

const systemPause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.after(ms, resolve));

const spare = (leader: () => number | undefined, max_connections = 100): Front => {
  const front = new Front({
    hostname: "127.0.0.1",
    port: 0,
    clock: systemClock,
    max_connections,
    token: TOKEN,
    leader: () => {
      const port = leader();
      return port === undefined ? undefined : `127.0.0.1:${port}`;
    },
    own: () => "",
    problem: () => undefined,
  });
  open.push({ stop: () => front.end() });
  return front;
};

/** A client that can stop reading. */
const rawClient = async (port: number, text: string) => {
  let received = 0;
  const heard: Buffer[] = [];
  let ended = false;
  const socket: Socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, bytes) => {
        received += bytes.length;
        if (heard.length < 100) heard.push(Buffer.from(bytes));
      },
      close: () => {
        ended = true;
      },
    },
  });
  open.push({ stop: () => socket.terminate() });
  socket.write(text);
  return { socket, received: () => received, text: () => Buffer.concat(heard).toString("latin1"), ended: () => ended };
};

describe("a spare", () => {
  test("[CL-4] passes requests on with the address of the client, and believes nobody else who names one", async () => {
    const { port } = activeNode();
    const front = spare(() => port);
    const ask = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${front.port}/some/path`, { method: "POST", body: "x".repeat(300_000), headers });
    const plain = await (await ask({})).json();
    expect(plain).toMatchObject({ pathname: "/some/path", named: "127.0.0.1", body: "x".repeat(300_000) });
    // Who says that another node has passed it on is no client of a spare.
    const forged = await fetch(`http://127.0.0.1:${front.port}/`, { headers: { [NODE_HEADER]: `${TOKEN} 10.0.0.1` } });
    expect([forged.status, forged.headers.get("retry-after")]).toEqual([503, "1"]);
  });

  test("[CL-4] streams what comes as it comes, and many at once", async () => {
    const { port } = activeNode();
    const front = spare(() => port);
    const all = await Promise.all(
      Array.from({ length: 40 }, async (_, i) =>
        i % 2
          ? (await fetch(`http://127.0.0.1:${front.port}/slow`)).text()
          : (await fetch(`http://127.0.0.1:${front.port}/a`)).status,
      ),
    );
    expect(new Set(all)).toEqual(new Set([200, "data: 0\n\ndata: 1\n\ndata: 2\n\n"]));
    await until(() => front.size === 0);
  });

  test("[CL-4] loses no message of a WebSocket whose reader stops for a while, and keeps little of it", async () => {
    const { port, seen } = activeNode();
    const front = spare(() => port);
    const key = "dGhlIHNhbXBsZSBub25jZQ==";
    const upgrade = `GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`;
    const client = await rawClient(front.port, upgrade);
    await until(() => client.text().includes("101 Switching"));
    const before = process.memoryUsage().rss;
    client.socket.pause();
    // A masked frame with the text `pump`, under the key 0.
    client.socket.write(Uint8Array.from([0x81, 0x84, 0, 0, 0, 0, ...Buffer.from("pump")]));
    await until(() => seen.blocked);
    const sent = seen.sent;
    await systemPause(300);
    // Nobody reads: what the two sockets and the active node's own buffer hold is all that is on its way.
    expect(seen.sent).toBeLessThan(sent + 200);
    expect(seen.sent).toBeLessThan(MESSAGES);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    client.socket.resume();
    // A frame of 64 KiB has a head of ten bytes.
    await until(() => client.received() >= MESSAGES * (BIG + 10));
    expect(seen.sent).toBe(MESSAGES);
  }, 40_000);

  test("[CL-4] takes a body from a client as slowly as the active node reads it", async () => {
    const { port } = activeNode();
    const front = spare(() => port);
    const body = Buffer.alloc(32 * 1024 * 1024, "y");
    const answer = await fetch(`http://127.0.0.1:${front.port}/up`, { method: "POST", body });
    expect(((await answer.json()) as { body: string }).body.length).toBe(body.length);
  }, 20_000);

  test("[CL-5] lets who comes wait while no node is active, and says so when none comes", async () => {
    const { port } = activeNode();
    let leader: number | undefined;
    const front = spare(() => leader);
    const early = fetch(`http://127.0.0.1:${front.port}/early`);
    await until(() => front.size === 1);
    leader = port;
    expect((await early).status).toBe(200);
  });

  test("[CL-6] answers for itself whether it lives and could take over, and refuses what is no request", async () => {
    const front = spare(() => undefined);
    const ready = await fetch(`http://127.0.0.1:${front.port}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([200, { message: "Ready: this node is a spare." }]);
    expect((await fetch(`http://127.0.0.1:${front.port}/healthz`)).status).toBe(200);
    for (const wrong of [
      "nonsense\r\n\r\n",
      "GET / HTTP/1.1\r\nbad header\r\n\r\n",
      `GET / HTTP/1.1\r\nx: ${"y".repeat(70_000)}`,
    ]) {
      const client = await rawClient(front.port, wrong);
      await until(() => client.text().startsWith("HTTP/1.1 400"));
    }
  });

  test("[CL-6] refuses more connections than it may have", async () => {
    const front = spare(() => undefined, 2);
    await rawClient(front.port, "GET");
    await rawClient(front.port, "GET");
    await until(() => front.size === 2);
    const third = await rawClient(front.port, "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => third.text().startsWith("HTTP/1.1 503"));
  });
});
