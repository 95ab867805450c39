// Forwarding by a spare, over real sockets: requests, streams and WebSockets, to a server that simulates the active node.
import { afterEach, describe, expect, test } from "bun:test";
import type { Server, Socket } from "bun";
import { systemClock } from "#base/clock.ts";
import { sha256 } from "#base/ids.ts";
import { NODE_HEADER } from "#base/network/node-headers.ts";
import { decline, parseForwardedAddress } from "#src/cluster/forwarded-header.ts";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";

const TOKEN = "the-token-of-the-nodes";
const STATE = { node: "spare", lease: "elsewhere", database: "answers", standby: "connected" } as const;
const MESSAGE_BYTES = 64 * 1024;
const MESSAGE_COUNT = 1600;

const openServers: { stop(): void }[] = [];
afterEach(() => {
  for (const server of openServers.splice(0)) server.stop();
});

type ReaderState = { sent: number; blocked: boolean };

/** Starts a fake active node that echoes requests, streams, and sends more than a reader accepts. */
const startActiveNode = () => {
  const progress: ReaderState = { sent: 0, blocked: false };
  const pump = (socket: Bun.ServerWebSocket<unknown>): void => {
    progress.blocked = false;
    while (progress.sent < MESSAGE_COUNT) {
      const message = new Uint8Array(MESSAGE_BYTES);
      new DataView(message.buffer).setUint32(0, progress.sent);
      const result = socket.send(message);
      if (result === 0) return;
      progress.sent++;
      if (result === -1) {
        progress.blocked = true;
        return;
      }
    }
  };
  const server: Server<unknown> = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request, bunServer) {
      const { pathname } = new URL(request.url);
      const clientAddress = parseForwardedAddress(request.headers.get(NODE_HEADER), sha256(TOKEN));
      if (pathname === "/readyz") {
        const host = request.headers.get("host");
        return Response.json({ message: "Not now." }, { status: host === "slipway.test" ? 200 : 503 });
      }
      if (pathname === "/socket" && bunServer.upgrade(request, { data: undefined })) return;
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
      return Response.json({ pathname, clientAddress, body: await request.text() });
    },
    websocket: {
      backpressureLimit: 1024 * 1024,
      message: (socket, text) => (text === "pump" ? pump(socket) : void socket.send(text)),
      drain: pump,
    },
  });
  openServers.push({ stop: () => void server.stop(true) });
  return { port: server.port as number, progress };
};

const systemPause = (ms: number): Promise<void> => new Promise((resolve) => void systemClock.after(ms, resolve));

const startSpare = (
  leader: () => number | undefined,
  max_connections = 100,
  reads: () => number | undefined = () => undefined,
): Forwarder => {
  const forwarder = new Forwarder({
    hostname: "127.0.0.1",
    port: 0,
    clock: systemClock,
    max_connections,
    isOurs: (host) => !host.startsWith("elsewhere."),
    token: TOKEN,
    leader: () => {
      const port = leader();
      return port === undefined ? undefined : `127.0.0.1:${port}`;
    },
    own: () => "",
    reads: () => {
      const port = reads();
      return port === undefined ? undefined : { hostname: "127.0.0.1", port };
    },
    state: () => STATE,
  });
  openServers.push({ stop: () => forwarder.end() });
  return forwarder;
};

/** Opens a port with a full accept queue: dialing it gets no response, as with an unreachable machine. */
const openUnansweredPort = async () => {
  const program = [
    "import socket, sys, time",
    "listener = socket.socket(); listener.bind(('127.0.0.1', 0)); listener.listen(0)",
    "print(listener.getsockname()[1], flush=True)",
    "sys.stdin.read()",
  ].join("\n");
  const child = Bun.spawn([needs.python3.file, "-c", program], { stdin: "pipe", stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const port = Number(new TextDecoder().decode(value));
  const countConnections = (state: string): number => {
    const { stdout } = Bun.spawnSync(["cat", "/proc/net/tcp"]);
    const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
    return stdout
      .toString()
      .split("\n")
      .filter((line) => line.trim().split(/\s+/)[2] === remote && line.trim().split(/\s+/)[3] === state).length;
  };
  // The queue accepts one connection more than its length.
  const filling = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
  return {
    port,
    /** Returns true while a connection waits for the response to its first packet. */
    isDialing: () => countConnections("02") > 0,
    async [Symbol.asyncDispose]() {
      filling.terminate();
      child.kill("SIGKILL");
      await child.exited;
    },
  };
};

/** Opens a client that can stop reading. */
const openRawClient = async (port: number, text: string) => {
  let received = 0;
  const chunks: Buffer[] = [];
  const socket: Socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_, bytes) => {
        received += bytes.length;
        if (chunks.length < 100) chunks.push(Buffer.from(bytes));
      },
    },
  });
  openServers.push({ stop: () => socket.terminate() });
  socket.write(text);
  return { socket, received: () => received, text: () => Buffer.concat(chunks).toString("latin1") };
};

describe("a spare", () => {
  test("[CL-4] forwards requests with the client's address, and ignores an address that a client claims to forward", async () => {
    const { port } = startActiveNode();
    const forwarder = startSpare(() => port);
    const callForwarder = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${forwarder.port}/some/path`, { method: "POST", body: "x".repeat(300_000), headers });
    const forwarded = await (await callForwarder({})).json();
    expect(forwarded).toMatchObject({ pathname: "/some/path", clientAddress: "127.0.0.1", body: "x".repeat(300_000) });
    // A request that claims to be forwarded, but lacks the token, is treated like any other.
    const forged = await fetch(`http://127.0.0.1:${forwarder.port}/`, {
      headers: { [NODE_HEADER]: `not-${TOKEN} 10.0.0.1` },
    });
    expect([forged.status, await forged.json()]).toMatchObject([200, { clientAddress: "127.0.0.1" }]);
  });

  test("[CL-4] streams data as it arrives, for many requests in parallel", async () => {
    const { port } = startActiveNode();
    const forwarder = startSpare(() => port);
    const results = await Promise.all(
      Array.from({ length: 40 }, async (_, i) =>
        i % 2
          ? (await fetch(`http://127.0.0.1:${forwarder.port}/slow`)).text()
          : (await fetch(`http://127.0.0.1:${forwarder.port}/a`)).status,
      ),
    );
    expect(new Set(results)).toEqual(new Set([200, "data: 0\n\ndata: 1\n\ndata: 2\n\n"]));
    await until(() => forwarder.size === 0);
  });

  test("[CL-4] loses no message of a WebSocket whose reader stops for a while, and buffers little", async () => {
    const { port, progress } = startActiveNode();
    const forwarder = startSpare(() => port);
    const key = "dGhlIHNhbXBsZSBub25jZQ==";
    const upgrade = `GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`;
    const client = await openRawClient(forwarder.port, upgrade);
    await until(() => client.text().includes("101 Switching"));
    const rssBefore = process.memoryUsage().rss;
    client.socket.pause();
    // A masked frame with the text `pump` and the key 0.
    client.socket.write(Uint8Array.from([0x81, 0x84, 0, 0, 0, 0, ...Buffer.from("pump")]));
    await until(() => progress.blocked);
    const sent = progress.sent;
    await systemPause(300);
    // Nothing reads: only the two sockets and the active node's own buffer hold data.
    expect(progress.sent).toBeLessThan(sent + 200);
    expect(progress.sent).toBeLessThan(MESSAGE_COUNT);
    expect(process.memoryUsage().rss - rssBefore).toBeLessThan(64 * 1024 * 1024);
    client.socket.resume();
    // A frame of 64 KiB has a header of ten bytes.
    await until(() => client.received() >= MESSAGE_COUNT * (MESSAGE_BYTES + 10));
    expect(progress.sent).toBe(MESSAGE_COUNT);
  });

  test("[CL-4] takes a body from a client as slowly as the active node reads it", async () => {
    const { port } = startActiveNode();
    const forwarder = startSpare(() => port);
    const body = Buffer.alloc(32 * 1024 * 1024, "y");
    const response = await fetch(`http://127.0.0.1:${forwarder.port}/up`, { method: "POST", body });
    expect(((await response.json()) as { body: string }).body.length).toBe(body.length);
  });

  test("[CL-20] [CL-21] tries reads itself first, and forwards reads that it cannot answer to the active node", async () => {
    const { port } = startActiveNode();
    const requests: string[] = [];
    const { promise: never } = Promise.withResolvers<Response>();
    const readServer = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const { pathname } = new URL(request.url);
        requests.push(
          `${request.method} ${pathname} ${parseForwardedAddress(request.headers.get(NODE_HEADER), sha256(TOKEN))}`,
        );
        if (pathname === "/elsewhere") return new Response(null, { status: 421 });
        if (pathname === "/hangs") return never;
        return new Response("read here ".repeat(100_000));
      },
    });
    openServers.push({ stop: () => void readServer.stop(true) });
    let reads: number | undefined = readServer.port;
    const forwarder = startSpare(
      () => port,
      undefined,
      () => reads,
    );
    const callForwarder = async (path: string, init: RequestInit = {}): Promise<string> => {
      const text = await (
        await fetch(`http://127.0.0.1:${forwarder.port}${path}`, { ...init, keepalive: false })
      ).text();
      return text.startsWith("read here") ? `read here, ${text.length}` : JSON.parse(text).pathname;
    };
    expect(await callForwarder("/known")).toBe("read here, 1000000");
    expect(await callForwarder("/elsewhere")).toBe("/elsewhere");
    expect(await callForwarder("/known", { method: "POST" })).toBe("/known");
    expect(requests).toEqual(["GET /known 127.0.0.1", "GET /elsewhere 127.0.0.1"]);
    // Reading stops while a response is awaited.
    const hanging = callForwarder("/hangs");
    await until(() => requests.length === 3);
    reads = undefined;
    expect(await hanging).toBe("/hangs");
    expect(await callForwarder("/known")).toBe("/known");
    // Nothing listens there.
    reads = 1;
    expect(await callForwarder("/known")).toBe("/known");
    await until(() => forwarder.size === 0);
  });

  test("[CL-5] holds connections while no node is active, and explains when none takes over", async () => {
    const { port } = startActiveNode();
    let leader: number | undefined;
    const forwarder = startSpare(() => leader);
    const early = fetch(`http://127.0.0.1:${forwarder.port}/early`);
    await until(() => forwarder.size === 1);
    leader = port;
    expect((await early).status).toBe(200);
  });

  test("[CL-5] retries the whole request on the next node when the first is no longer active, and for no other reason", async () => {
    const requests: number[] = [];
    // A node that is shutting down, and an application behind a node, which may respond in any way.
    const startUpstream = (respond: (request: Request) => Promise<Response>) => {
      const server = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: (request) => {
          requests.push(server.port as number);
          return respond(request);
        },
      });
      openServers.push({ stop: () => void server.stop(true) });
      return server.port as number;
    };
    const stoppingNode = startUpstream((request) => decline(request, TOKEN, systemClock));
    const application = startUpstream(
      async () => new Response("from behind", { status: 503, headers: { [NODE_HEADER]: "elsewhere" } }),
    );
    const next = startActiveNode().port;
    let leader = stoppingNode;
    const forwarder = startSpare(() => leader);
    const post = (body: Uint8Array) =>
      fetch(`http://127.0.0.1:${forwarder.port}/up`, { method: "POST", body, keepalive: false });
    /**
     * Posts until the spare has called the node twice. Starts over if the response is 503: on a busy machine, the node may refuse so slowly
     * that the request counts as started.
     */
    const postUntilRetried = async (size: number): Promise<{ response: Promise<Response> }> => {
      requests.length = 0;
      let isRefused = false;
      const response = post(Buffer.alloc(size, "y"));
      void response.then(
        ({ status }) => (isRefused = status === 503),
        () => (isRefused = false),
      );
      await until(() => requests.length >= 2 || isRefused);
      return isRefused ? postUntilRetried(size) : { response };
    };
    for (const size of [0, 10, 300_000, 3_000_000]) {
      leader = stoppingNode;
      const { response } = await postUntilRetried(size);
      leader = next;
      expect(((await (await response).json()) as { body: string }).body.length).toBe(size);
    }
    // The response that a spare of an earlier version forwards to its client.
    const plain = await fetch(`http://127.0.0.1:${stoppingNode}/`);
    expect([plain.status, plain.headers.get("retry-after"), plain.headers.get(NODE_HEADER)?.includes(TOKEN)]).toEqual([
      503,
      "1",
      false,
    ]);
    leader = application;
    requests.length = 0;
    const refusal = await post(Buffer.from("x"));
    expect([refusal.status, await refusal.text(), requests]).toEqual([503, "from behind", [application]]);
    // Another spare that is mistaken for the active node.
    leader = startSpare(() => undefined).port;
    const early = post(Buffer.from("four"));
    await until(() => forwarder.size === 1);
    leader = next;
    expect(((await (await early).json()) as { body: string }).body).toBe("four");
    await until(() => forwarder.size === 0);
  });

  testNeeding(
    [needs.python3],
    "[CL-5] continues with the next node when the previous one silently stops accepting connections",
    async () => {
      await using silent = await openUnansweredPort();
      const { port } = startActiveNode();
      let leader = silent.port;
      const forwarder = startSpare(() => leader);
      const response = fetch(`http://127.0.0.1:${forwarder.port}/early`);
      await until(() => silent.isDialing());
      leader = port;
      expect((await response).status).toBe(200);
      await until(() => forwarder.size === 0);
    },
  );

  test("[CL-6] is alive on its own, and ready while the active node is", async () => {
    let leader: number | undefined;
    const forwarder = startSpare(() => leader);
    const fetchReadiness = async (headers: Record<string, string> = {}) => {
      const response = await fetch(`http://127.0.0.1:${forwarder.port}/readyz`, { headers });
      return [response.status, await response.json()];
    };
    const alive = await fetch(`http://127.0.0.1:${forwarder.port}/healthz`);
    expect([alive.status, await alive.text()]).toEqual([200, "OK"]);
    expect(alive.headers.get("x-content-type-options")).toBe("nosniff");
    expect(await fetchReadiness()).toEqual([503, { message: "No node of the cluster is active.", ...STATE }]);
    leader = startActiveNode().port;
    const host = "slipway.test";
    const readyBody = { message: "Ready: this node forwards to the active one.", ...STATE };
    expect(await fetchReadiness({ host })).toEqual([200, readyBody]);
    expect(await fetchReadiness()).toEqual([503, { message: "The active node is not ready: Not now.", ...STATE }]);
    // Two spares that mistake each other for the active node.
    leader = startSpare(() => forwarder.port).port;
    const [status, { message }] = (await fetchReadiness({ host })) as [number, { message: string }];
    expect([status, message]).toEqual([503, "The active node is not ready: This node is not the active one."]);
    leader = 1;
    expect(await fetchReadiness({ host })).toEqual([
      503,
      { message: "The active node does not answer this one.", ...STATE },
    ]);
  });

  test("[CL-6] answers liveness checks for the server's host, and leaves other hosts to the active node", async () => {
    const node = startActiveNode();
    const { port } = startSpare(() => node.port);
    const callForwarder = async (host: string) =>
      (await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { host } })).text();
    expect(await callForwarder("slipway.test")).toBe("OK");
    expect(JSON.parse(await callForwarder("elsewhere.test"))).toMatchObject({
      pathname: "/healthz",
      clientAddress: "127.0.0.1",
    });
  });

  test("[CL-6] refuses invalid requests", async () => {
    const forwarder = startSpare(() => undefined);
    for (const head of [
      "nonsense\r\n\r\n",
      "GET / HTTP/1.1\r\nbad header\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n",
      "GET /healthz HTTP/1.0\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost: one.test\r\nHost: two.test\r\n\r\n",
      `GET / HTTP/1.1\r\nx: ${"y".repeat(70_000)}`,
    ]) {
      const client = await openRawClient(forwarder.port, head);
      await until(() => client.text().startsWith("HTTP/1.1 400"));
    }
  });

  test("[CL-6] refuses connections above the limit", async () => {
    const forwarder = startSpare(() => undefined, 2);
    await openRawClient(forwarder.port, "GET");
    await openRawClient(forwarder.port, "GET");
    await until(() => forwarder.size === 2);
    const third = await openRawClient(forwarder.port, "GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => third.text().startsWith("HTTP/1.1 503"));
  });
});
