// Requests that never end, too many concurrent requests, and deliberately slow clients.
import { describe, expect, test } from "bun:test";
import { ByteBudget } from "#src/api/http/body/budget.ts";
import { Requests } from "#src/api/http/requests.ts";
import { Client } from "#src/client.ts";
import { openContext } from "#src/context/open.ts";
import { startServer } from "#src/server.ts";
import { makeCertificate } from "#test/cli/certificate.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs } from "#test/support/needs.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { ADMIN, startTestServer, tempDirectory, testConfig } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { call, formatHead, readAnswer } from "./raw-http.ts";

const LOGIN = "/api/v2/users/login";

/** The head of a sign-in whose body is never completed. */
const unfinished = `${formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": 100 })}{`;

/** Resolves when the server is processing this many requests. */
const awaitOpenRequests = async (requests: Requests, count: number): Promise<void> => {
  await until(() => requests.size === count);
};

const pending = () => new Promise<Response>(() => {});
const createRequest = () => new Request("http://localhost/");

test("[HT-23] starts 32 of many simultaneous requests in each turn of the event loop, in order of arrival", async () => {
  const requests = new Requests(new ManualClock(), 1_000);
  const started: number[] = [];
  const createHandler = (n: number) => async () => {
    started.push(n);
    return new Response();
  };
  const responses = Array.from({ length: 100 }, (_, n) => requests.run(createRequest(), createHandler(n)));
  const startedCounts: number[] = [started.length];
  while (started.length < 100) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    // Later requests wait behind them.
    if (startedCounts.length === 1) responses.push(requests.run(createRequest(), createHandler(100)));
    startedCounts.push(started.length);
  }
  await Promise.all(responses);
  expect(startedCounts[0]).toBe(32);
  expect(Math.max(...startedCounts.map((count, i) => count - (startedCounts[i - 1] ?? 0)))).toBe(32);
  expect(started).toEqual(Array.from({ length: 101 }, (_, n) => n));
  expect(requests.size).toBe(0);
  // A single request does not wait.
  await Promise.all([requests.run(createRequest(), createHandler(101))]);
  expect(started.at(-1)).toBe(101);
});

describe("the deadline of a request", () => {
  test("[HT-8] [HT-23] a request that waits for its turn for a minute gets 503, is not started, and ends no server", async () => {
    const clock = new ManualClock();
    const requests = new Requests(clock, 1_000);
    let started = 0;
    const answer = async () => {
      started += 1;
      return new Response();
    };
    const crowd = Array.from({ length: 40 }, () => requests.run(createRequest(), answer));
    const outcomes = Promise.allSettled(crowd.slice(32));
    await Promise.all(crowd.slice(0, 32));
    // A busy event loop: the next turn begins only after the deadline.
    clock.advance(61_000);
    expect(new Set((await outcomes).map(({ status }) => status))).toEqual(new Set(["rejected"]));
    await requests.run(createRequest(), answer);
    expect([started, requests.size]).toEqual([33, 0]);
  });

  test("[HT-8] gives up on a stuck handler after a minute, without affecting others", async () => {
    const clock = new ManualClock();
    const requests = new Requests(clock, 10);
    const stuck = requests.run(createRequest(), pending);
    clock.advance(30_000);
    const later = requests.run(createRequest(), pending);
    clock.advance(31_000);
    await expect(stuck).rejects.toHaveProperty("kind", "overloaded");
    expect(requests.size).toBe(1);
    clock.advance(30_000);
    await expect(later).rejects.toHaveProperty("kind", "overloaded");
    expect(requests.size).toBe(0);
  });

  test("[HT-8] a declared stream has no deadline and does not delay a stop", async () => {
    const clock = new ManualClock();
    const requests = new Requests(clock, 10);
    const request = createRequest();
    const { promise, resolve } = Promise.withResolvers<Response>();
    const stream = requests.run(request, () => promise);
    requests.exempt(request);
    clock.advance(3_600_000);
    await requests.drain();
    resolve(new Response("end"));
    expect(await (await stream).text()).toBe("end");
  });

  test("[HT-8] returns 503 for a body that never arrives completely", async () => {
    const clock = new ManualClock();
    await using server = await startTestServer({ clock });
    const { requests } = server.context as { requests: Requests };
    using slow = new RawConnection(server.url);
    slow.send(unfinished);
    await awaitOpenRequests(requests, 1);
    clock.advance(61_000);
    const response = await readAnswer(slow);
    expect(response?.status).toBe(503);
    expect(response?.headers.get("retry-after")).toBe("1");
    expect(JSON.parse(response?.text as string)).toEqual({ message: "The request took too long and was canceled." });
    expect((await call(server.url, formatHead("GET", "/api/v2/buildinfo")))?.status).toBe(200);
  });
});

describe("large bodies", () => {
  test("[HT-49] are limited per sender and in total while the server receives them", () => {
    const bodies = new ByteBudget(100, 60, "Please retry.");
    const [first, second, bensBody] = [bodies.open("ann"), bodies.open("ann"), bodies.open("ben")];
    first.add(40);
    second.add(20);
    expect(() => second.add(1)).toThrow("Please retry");
    bensBody.add(40);
    expect(() => bodies.open("cleo").add(1)).toThrow("Please retry");
    first.release();
    first.release();
    second.add(40);
    // A second release frees nothing more.
    second.reduce(30);
    second.add(30);
    bensBody.reduce(50);
    bensBody.release();
    bodies.open("cleo").add(40);
  });

  test("[HT-49] limits a sender of endless bodies to 128 MiB, without affecting others", async () => {
    await using server = await startTestServer({ clock: new ManualClock() });
    const { token = "" } = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    const head = formatHead("POST", "/api/v2/users/me/secrets", {
      "Service-Session-Token": token,
      "Content-Type": "application/json",
      "Content-Length": String(4 * 1024 * 1024),
    });
    const connections = Array.from({ length: 32 }, () => new RawConnection(server.url));
    for (const connection of connections) connection.send(head);
    await awaitOpenRequests((server.context as { requests: Requests }).requests, 32);
    const response = await call(server.url, head);
    expect([response?.status, JSON.parse(response?.text as string).message]).toEqual([
      503,
      "Too many large request bodies are being received. Please retry.",
    ]);
    expect((await call(server.url, formatHead("GET", "/api/v2/buildinfo")))?.status).toBe(200);
    for (const connection of connections) connection[Symbol.dispose]();
  });

  test("[HT-49] does not read the body of a push event for a missing prebuild", async () => {
    await using server = await startTestServer();
    const response = await call(
      server.url,
      formatHead("POST", `/api/v2/repositories/prebuilds/${crypto.randomUUID()}/push`, { "Content-Length": "4000000" }),
    );
    expect(response?.status).toBe(404);
  });
});

describe("more requests than the server accepts", () => {
  testSingleServer("memory")(
    "[HT-9] returns 503 beyond max_connections, except to health checks, until connections close",
    async () => {
      await using server = await startTestServer({ env: { SLIPWAY_MAX_CONNECTIONS: "5" }, clock: new ManualClock() });
      const { requests } = server.context as { requests: Requests };
      const connections = Array.from({ length: 5 }, () => new RawConnection(server.url));
      for (const connection of connections) connection.send(unfinished);
      await awaitOpenRequests(requests, 5);
      const response = await call(server.url, formatHead("GET", "/api/v2/buildinfo"));
      expect(response?.status).toBe(503);
      expect(response?.headers.get("retry-after")).toBe("1");
      expect(JSON.parse(response?.text as string)).toEqual({ message: "The server has too many open requests." });
      expect((await call(server.url, formatHead("GET", "/healthz")))?.status).toBe(200);
      expect((await call(server.url, formatHead("GET", "/readyz")))?.status).toBe(200);
      for (const connection of connections) connection[Symbol.dispose]();
      await awaitOpenRequests(requests, 0);
      expect((await call(server.url, formatHead("GET", "/api/v2/buildinfo")))?.status).toBe(200);
    },
  );

  test("[HT-9] a thousand silent or half-sent connections do not block other clients", async () => {
    await using server = await startTestServer();
    const idleConnections = Array.from({ length: 1000 }, () => new RawConnection(server.url));
    for (const [i, connection] of idleConnections.entries()) {
      const sentTexts = ["", "GET / HTT", formatHead("GET", "/healthz").slice(0, -2), unfinished];
      connection.send(sentTexts[i % sentTexts.length] as string);
    }
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => call(server.url, formatHead("GET", "/api/v2/buildinfo"))),
    );
    expect(responses.map((response) => response?.status)).toEqual(Array(50).fill(200));
    for (const connection of idleConnections) connection[Symbol.dispose]();
  });

  test("[HT-9] answers every request of a flood", async () => {
    await using server = await startTestServer();
    const countSuccesses = async (): Promise<number> => {
      let successes = 0;
      for (let i = 0; i < 100; i++)
        if ((await fetch(new URL("/api/v2/buildinfo", server.url))).status === 200) successes++;
      return successes;
    };
    const counts = await Promise.all(Array.from({ length: 30 }, countSuccesses));
    expect(counts).toEqual(Array(30).fill(100));
  });
});

test("[HT-46] a starting server answers health checks immediately, and other requests once its routes are built", async () => {
  using directory = tempDirectory();
  await using context = await openContext({ config: testConfig(directory.path) });
  const starting = startServer(context);
  // It already listens. Starting takes longer than these responses.
  const fetchAnswer = async (path: string) => {
    const response = await fetch(new URL(path, context.accessUrl));
    const { date: _, ...headers } = Object.fromEntries(response.headers);
    return { status: response.status, headers, text: await response.text() };
  };
  const first = await fetchAnswer("/healthz");
  expect(first).toMatchObject({ status: 200, text: "OK" });
  const [ready, build, unknown] = await Promise.all([
    fetchAnswer("/readyz"),
    fetchAnswer("/api/v2/buildinfo"),
    fetchAnswer("/api/v2/nothing"),
  ]);
  expect([ready.status, build.status, unknown.status]).toEqual([200, 200, 404]);
  expect(await fetchAnswer("/healthz")).toEqual(first);
  const server = await starting;
  expect((await fetch(new URL("/healthz", server.url), { method: "POST" })).status).toBe(405);
  await server.stop("the test is over");
});

/** Resolves once a server with a timeout of one second has closed connections that sent these texts. */
const awaitIdleClose = async (texts: readonly string[], env: Record<string, string> = {}): Promise<void> => {
  using directory = tempDirectory();
  await using context = await openContext({ config: testConfig(directory.path, { env }) });
  const server = await startServer(context, { idleTimeoutSeconds: 1 });
  const connections = texts.map((text) => {
    const connection = new RawConnection(server.url);
    connection.send(Buffer.from(text, "latin1"));
    return connection;
  });
  await Promise.all(connections.map((connection) => connection.closed));
  await server.stop("the test is over");
};

// In parallel, because the runtime has its own timeout of ten seconds.
test("[HT-10] closes idle connections at any stage of a request or a TLS handshake", async () => {
  using temp = tempDirectory();
  const requestHead = formatHead("GET", "/healthz");
  const waits = [awaitIdleClose(["", "GET / HTT", requestHead.slice(0, -2), unfinished, requestHead])];
  if (needs.openssl.found) {
    const { cert, key } = await makeCertificate(temp.path, "here");
    const env = { SLIPWAY_TLS_CERT_FILE: cert, SLIPWAY_TLS_KEY_FILE: key };
    // Nothing, the start of a record, and data that is not TLS.
    waits.push(awaitIdleClose(["", "\x16\x03\x01\x02\x00\x01", "GET / HTTP/1.1\r\n\r\n"], env));
  }
  await Promise.all(waits);
});
