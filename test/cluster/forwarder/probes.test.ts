// Health checks of a node are answered even if it has the maximum number of connections.
import { afterEach, expect, test } from "bun:test";
import { Forwarder } from "#src/cluster/forwarder.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { RawConnection, rawRequest } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";

const MAX_OPEN_REQUESTS = 2;
/** Number of additional connections whose heads are read, and for how long. */
const PROBE_RESERVE = 32;
const PROBE_HEAD_TIMEOUT_MS = 2_000;

const disposables: Disposable[] = [];
afterEach(() => {
  for (const disposable of disposables.splice(0)) disposable[Symbol.dispose]();
});

/** A node at its limit of idle connections. */
const openFullNode = async () => {
  const clock = new ManualClock();
  const forwarder = new Forwarder({
    hostname: "127.0.0.1",
    port: 0,
    clock,
    max_connections: MAX_OPEN_REQUESTS,
    isOurs: () => true,
    token: "the-token-of-the-nodes",
    leader: () => undefined,
    own: () => "",
    state: () => ({ node: "spare", lease: "free", database: "answers", standby: "connected" }),
  });
  disposables.push({ [Symbol.dispose]: () => forwarder.end() });
  const url = new URL(`http://127.0.0.1:${forwarder.port}`);
  /** Opens this many more idle connections. */
  const openIdle = async (count: number): Promise<RawConnection[]> => {
    const expectedSize = forwarder.size + count;
    const connections = Array.from({ length: count }, () => new RawConnection(url));
    disposables.push(...connections);
    await until(() => forwarder.size === expectedSize);
    return connections;
  };
  const sendRequest = (path: string, method = "GET") =>
    rawRequest(url, `${method} ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  return { clock, forwarder, openIdle, sendRequest, idleConnections: await openIdle(MAX_OPEN_REQUESTS) };
};

const TOO_MANY_REQUESTS = { status: 503, body: JSON.stringify({ message: "The server has too many open requests." }) };

test("[CL-60] beyond max_connections only health checks are answered", async () => {
  const { sendRequest, forwarder } = await openFullNode();
  for (let round = 0; round < 2 * PROBE_RESERVE; round++) {
    expect(await sendRequest("/healthz")).toEqual({ status: 200, body: "OK" });
    const ready = await sendRequest("/readyz");
    expect([ready.status, JSON.parse(ready.body).message]).toEqual([503, "No node of the cluster is active."]);
    expect(await sendRequest("/healthz", "POST")).toEqual(TOO_MANY_REQUESTS);
    expect(await sendRequest("/api/v2/buildinfo")).toEqual(TOO_MANY_REQUESTS);
  }
  await until(() => forwarder.size === MAX_OPEN_REQUESTS);
});

test("[CL-60] the reserve for health checks is small, and a client that sends nothing is disconnected soon", async () => {
  const { clock, forwarder, openIdle, sendRequest, idleConnections } = await openFullNode();
  const additional = await openIdle(PROBE_RESERVE);
  expect(await sendRequest("/healthz")).toEqual(TOO_MANY_REQUESTS);
  clock.advance(PROBE_HEAD_TIMEOUT_MS);
  await Promise.all(additional.map(({ closed }) => closed));
  await until(() => forwarder.size === MAX_OPEN_REQUESTS);
  expect((await sendRequest("/healthz")).status).toBe(200);
  expect(idleConnections.map(({ socket }) => socket.closed)).toEqual([false, false]);
});
