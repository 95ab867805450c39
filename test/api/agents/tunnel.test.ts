// The tunnel, with a real server, a real daemon process and real programs that listen on its machine.
import { describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import type { Duplex } from "#src/wire/duplex.ts";
import { createWebSocketStream } from "#src/wire/websocket.ts";
import { YamuxSession } from "#src/wire/yamux.ts";
import { encodeHeader, FRAME } from "#src/wire/yamux-frame.ts";
import { forFile } from "#test/support/for-file.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { getContext, seedAgent, supersedeAgent } from "#test/support/seed.ts";
import { startTestServer, type TestServer } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { handshake } from "../edge/raw-http.ts";
import { startAgentProcess, startReachableAgent } from "./reach.ts";

const world = await forFile(startReachableAgent());

/** Starts a server that echoes its input and closes when the input ends. */
const startEchoServer = (hostname = "127.0.0.1") => {
  type Data = { queue: Uint8Array[]; ended: boolean };
  const flush = (socket: Bun.Socket<Data>): void => {
    const { queue } = socket.data;
    for (let chunk = queue[0]; chunk; chunk = queue[0]) {
      const sent = Math.max(0, socket.write(chunk));
      if (sent < chunk.byteLength) {
        queue[0] = chunk.subarray(sent);
        return;
      }
      queue.shift();
    }
    if (socket.data.ended) socket.end();
  };
  const server = Bun.listen<Data>({
    hostname,
    port: 0,
    allowHalfOpen: true,
    socket: {
      open(socket) {
        socket.data = { queue: [], ended: false };
      },
      data(socket, chunk) {
        socket.data.queue.push(chunk);
        flush(socket);
      },
      drain: flush,
      end(socket) {
        socket.data.ended = true;
        flush(socket);
      },
    },
  });
  return { port: server.port, [Symbol.dispose]: () => server.stop(true) };
};

const dial = (port: number, agent_id = world.seeded.agent_id) => getContext(world.server).dialer.dial(agent_id, port);

const createBytes = (size: number, seed: number): Uint8Array => {
  const bytes = new Uint8Array(size);
  for (let i = 0; i < size; i += 1) bytes[i] = (i * 7 + (i >> 8) + seed) & 255;
  return bytes;
};

const readAll = async (stream: Duplex): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** Sends the bytes, ends the stream, and returns the response. */
const exchange = async (port: number, bytes: Uint8Array): Promise<Buffer> => {
  const stream = await dial(port);
  const [response] = await Promise.all([readAll(stream), stream.write(bytes).then(() => stream.end())]);
  return response;
};

const getRejection = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return "none";
  } catch (error) {
    return (error as Error).message;
  }
};

describe("streams through the tunnel", () => {
  test("[TN-1] reach ports of the workspace on both loopback addresses, and transfer all bytes in order", async () => {
    using ipv4Echo = startEchoServer();
    using ipv6Echo = startEchoServer("::1");
    const bytes = createBytes(5_000_000, 3);
    expect((await exchange(ipv4Echo.port, bytes)).equals(bytes)).toBe(true);
    expect((await exchange(ipv6Echo.port, bytes.subarray(0, 1000))).equals(bytes.subarray(0, 1000))).toBe(true);
  });

  test("[TN-2] are refused with the reason if the port is not offered or nothing listens", async () => {
    for (const port of [1, 3, 5, 8]) expect(await getRejection(dial(port))).toContain(`does not offer port ${port}`);
    const closedEcho = startEchoServer();
    closedEcho[Symbol.dispose]();
    expect(await getRejection(dial(closedEcho.port))).toContain("Nothing listens there: ECONNREFUSED");
    for (const port of [0, -1, 65_536, 1.5]) expect(await getRejection(dial(port))).toContain("no such port");
    const neverConnected = await seedAgent(world.server);
    expect(await getRejection(dial(4, neverConnected.agent_id))).toContain('its state is "connecting"');
  });

  test("[TN-3] run concurrently, and one that is not read does not delay 299 others", async () => {
    using echo = startEchoServer();
    const stalled = await dial(echo.port);
    // More bytes than all windows and buffers in between, so this write ends only with the stream.
    const stalledWrite = stalled.write(createBytes(64 * 1024 * 1024, 1)).catch((error: Error) => error.message);
    const started = performance.now();
    const sizes = Array.from({ length: 299 }, (_, i) => 1_000 + i * 100);
    const errors = await Promise.all(
      sizes.map(async (size, i) =>
        (await exchange(echo.port, createBytes(size, i))).equals(createBytes(size, i)) ? 0 : 1,
      ),
    );
    expect(errors.filter((error) => error === 1)).toEqual([]);
    expect(performance.now() - started).toBeLessThan(10_000);
    stalled.reset("enough");
    expect(await stalledWrite).toBe("enough");
    expect(await exchange(echo.port, new Uint8Array(0))).toHaveLength(0);
  });
});

describe("the life of a tunnel", () => {
  test("[TN-4] the server uses an agent's newest tunnel, and a newer build closes it with 1001", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const first = await openTunnel(server, seeded.agent_token);
    const second = await openTunnel(server, seeded.agent_token);
    expect(await first.closed).toEqual({ code: 1001, reason: "a newer tunnel of this agent has taken over" });
    const dialed = getContext(server).dialer.dial(seeded.agent_id, 4);
    const stream = await second.session.accept();
    await stream?.write(Uint8Array.of(0, 0, 0));
    await dialed;
    await supersedeAgent(server, seeded);
    expect(await second.closed).toEqual({ code: 1001, reason: "a newer build has taken over" });
    expect(await getRejection(getContext(server).dialer.dial(seeded.agent_id, 4))).toContain("its state is");
    await expect(openTunnel(server, seeded.agent_token)).rejects.toThrow();
    expect(getContext(server).dialer.size).toBe(0);
  });

  test("[TN-6] when the tunnel breaks, its streams and dials fail with a reason; a dial to a silent agent can be canceled", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const { dialer } = getContext(server);
    const tunnel = await openTunnel(server, seeded.agent_token);
    const dialed = dialer.dial(seeded.agent_id, 9_999);
    const agentStream = await tunnel.session.accept();
    await agentStream?.write(Uint8Array.of(0, 0, 0));
    const stream = await dialed;
    const readError = getRejection(stream.read());
    const dialError = getRejection(dialer.dial(seeded.agent_id, 9_998));
    await tunnel.session.accept();
    tunnel.cut();
    expect(await readError).toMatch(/closed|over/);
    expect(await dialError).toMatch(/closed|over/);
    expect(await getRejection(stream.write(new Uint8Array(1)))).toMatch(/closed|over/);
    const abort = new AbortController();
    await using newTunnel = await openTunnel(server, seeded.agent_token);
    const canceledDial = getRejection(dialer.dial(seeded.agent_id, 4, abort.signal));
    await newTunnel.session.accept();
    abort.abort();
    expect(await canceledDial).toBe("The caller has gone.");
  });

  test("[TN-5] the daemon opens a new tunnel after the connection breaks", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    await using daemon = await startAgentProcess(server, seeded, world.home);
    const { dialer, sockets } = getContext(server);
    using echo = startEchoServer();
    const stream = await dialer.dial(seeded.agent_id, echo.port);
    const readError = getRejection(stream.read());
    sockets.closeAll("the test cuts every connection");
    expect(await readError).not.toBe("none");
    // A dial fails until the agent is connected again; then it waits for the tunnel.
    const newStream = await until(() => dialer.dial(seeded.agent_id, echo.port).catch(() => undefined));
    await newStream.write(createBytes(10, 1));
    expect([...((await newStream.read()) as Uint8Array)]).toEqual([...createBytes(10, 1)]);
    newStream.reset();
    expect(daemon.process.exitCode).toBeNull();
  });
});

describe("limits of a tunnel", () => {
  test("[TN-13] an agent can open at most 60 tunnels a minute, without affecting other agents", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const request = handshake("/api/v2/workspaceagents/me/tunnel", { "Service-Session-Token": seeded.agent_token });
    const open = async (): Promise<string> => {
      using connection = new RawConnection(server.url);
      connection.send(request);
      return (await connection.until((text) => text.includes("\r\n\r\n"))).slice(9, 12);
    };
    // The requests may span two minutes.
    const statuses = await Promise.all(Array.from({ length: 130 }, open));
    expect([...new Set(statuses)].sort()).toEqual(["101", "429"]);
    expect(statuses.filter((status) => status === "101").length).toBeLessThanOrEqual(120);
    const { agent_token } = await seedAgent(server);
    await using otherTunnel = await openTunnel(server, agent_token);
    expect(otherTunnel.session.streams).toBe(0);
  });

  test("[TN-13] the agents of one owner can use at most half of the sockets", async () => {
    await using server = await startTestServer({ clock: systemClock, env: { SLIPWAY_MAX_CONNECTIONS: "7" } });
    const seeded = await seedAgent(server);
    using connections = new DisposableStack();
    const open = async (path: string, { agent_token }: { agent_token: string }): Promise<string> => {
      const connection = connections.use(new RawConnection(server.url));
      connection.send(handshake(`/api/v2/workspaceagents/me/${path}`, { "Service-Session-Token": agent_token }));
      return (await connection.until((text) => text.includes("\r\n\r\n"))).slice(9, 12);
    };
    const statuses: string[] = [];
    for (const path of ["tunnel", "rpc", "rpc?role=logs", "rpc?role=logs"]) statuses.push(await open(path, seeded));
    expect(statuses).toEqual(["101", "101", "101", "503"]);
    expect(await open("rpc", await seedAgent(server))).toBe("101");
  });

  test("[TN-13] the server closes a tunnel in which the daemon opens streams", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const tunnel = await openTunnel(server, seeded.agent_token);
    for (let i = 0; i < 64; i += 1) await tunnel.session.open().catch(() => undefined);
    expect(await tunnel.closed).toEqual({ code: 1001, reason: "only the server opens streams" });
  });

  test("[TN-13] a message with hundreds of thousands of frames does not delay other requests", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    await using tunnel = await openTunnel(server, seeded.agent_token);
    const fetchHealth = (): Promise<string> => fetch(new URL("/healthz", server.url)).then(({ status }) => `${status}`);
    expect(await fetchHealth()).toBe("200");
    tunnel.send(Buffer.alloc(12 * 300_000, encodeHeader(FRAME.window, 0, 9_999, 1)));
    // The ping follows the frames, so the server answers it last.
    const pong = tunnel.session.ping().then((ms) => `pong ${ms !== undefined}`);
    expect(await Promise.race([pong, fetchHealth()])).toBe("200");
    expect(await pong).toBe("pong true");
  });
});

describe("a tunnel that sends invalid data", () => {
  // biome-ignore format: a table of cases
  const invalidMessages: [string, (Uint8Array | string)[], number][] = [
    ["random bytes", [crypto.getRandomValues(new Uint8Array(5_000)).fill(0xee, 0, 1)], 1002],
    ["an unknown version", [Uint8Array.of(9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)], 1002],
    ["an unknown type", [Uint8Array.of(0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)], 1002],
    ["a stream of the server's own numbers", [Uint8Array.of(0, 1, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0)], 1002],
    ["data beyond the window", [Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0)], 1002],
    ["a window beyond 32 bits", Array(2).fill(Uint8Array.of(0, 1, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff)), 1002],
    ["text", ["hello"], 1003],
  ];
  test.each(invalidMessages)("[TN-7] %s closes only that tunnel, with a reason", async (_, messages, code) => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    const url = new URL("/api/v2/workspaceagents/me/tunnel", server.url);
    url.protocol = "ws:";
    const socket = new WebSocket(url, { headers: { "Service-Session-Token": seeded.agent_token } } as never);
    const closed = new Promise<{ code: number; reason: string }>((resolve) => {
      socket.onclose = ({ code, reason }) => resolve({ code, reason });
    });
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    const dialed = getRejection(getContext(server).dialer.dial(seeded.agent_id, 4));
    for (const message of messages) socket.send(message as never);
    const closeEvent = await closed;
    expect(closeEvent.code).toBe(code);
    expect(await dialed).not.toBe("none");
    expect(closeEvent.reason).not.toBe("");
    expect((await fetch(new URL("/healthz", server.url))).status).toBe(200);
    expect(getContext(server).dialer.size).toBe(0);
  });

  test("[TN-7] an invalid response to a dial ends the stream, but not the tunnel", async () => {
    await using server = await startTestServer({ clock: systemClock });
    const seeded = await seedAgent(server);
    await using tunnel = await openTunnel(server, seeded.agent_token);
    for (const [response, reason] of [
      [Uint8Array.of(7, 0, 0), "makes no sense"],
      [Uint8Array.of(1, 0xff, 0xff), "makes no sense"],
      [Uint8Array.of(1, 0, 2, 0x6e, 0x6f), "no"],
    ] as const) {
      const dialed = getRejection(getContext(server).dialer.dial(seeded.agent_id, 4));
      const stream = await tunnel.session.accept();
      await stream?.write(response);
      expect(await dialed).toContain(reason);
    }
    const dialed = getContext(server).dialer.dial(seeded.agent_id, 4);
    await (await tunnel.session.accept())?.write(Uint8Array.of(0, 0, 0));
    await dialed;
  });
});

/** Opens a tunnel whose daemon end the test controls. */
const openTunnel = async (server: TestServer, token: string) => {
  const url = new URL("/api/v2/workspaceagents/me/tunnel", server.url);
  url.protocol = "ws:";
  const socket = new WebSocket(url, { headers: { "Service-Session-Token": token } } as never);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason }));
  });
  const stream = await createWebSocketStream(socket, systemClock);
  const session = new YamuxSession(stream, { role: "server", clock: systemClock });
  return {
    session,
    closed,
    send: (bytes: Uint8Array) => socket.send(bytes as never),
    cut: () => socket.terminate(),
    async [Symbol.asyncDispose]() {
      session.close();
      await closed;
    },
  };
};

test("[AG-22] an agent that uses this server's relay shows it with a measured latency", async () => {
  const loadLatency = async () =>
    (await world.owner.get<WorkspaceAgent>(`/api/v2/workspaceagents/${world.seeded.agent_id}`)).latency;
  await until(async () => Object.keys(await loadLatency()).length > 0);
  const [[name, region] = ["", undefined], ...others] = Object.entries(await loadLatency());
  expect([name, others.length, region?.preferred]).toEqual(["Coder Embedded Relay", 0, true]);
  expect(region?.latency_ms).toBeGreaterThan(0);
  expect(region?.latency_ms).toBeLessThan(10_000);
});
