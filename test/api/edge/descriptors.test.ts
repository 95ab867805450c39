// More connections than the limit on open files allows: a real process with a small limit, and clients that never finish a request.
import { expect, test } from "bun:test";
import { makeCertificate } from "#test/cli/certificate.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { scaleTimeout } from "#test/support/pace.ts";
import { startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { formatHead } from "./raw-http.ts";
import { type ServeProcess, startServe } from "./serve-process.ts";

/** How often each limit is tested: 20 in manual runs. */
const FLOODS = Number(process.env.SLIPWAY_TEST_FLOODS ?? 1);

const partialRequest = formatHead("GET", "/healthz").slice(0, -2);

/** Opens this many connections, each with this partial request; resolves once the server has closed some of them. */
const openFlood = async (url: URL, count: number, request: string): Promise<Disposable> => {
  const connections = Array.from({ length: count }, () => new RawConnection(url));
  let closed = 0;
  for (const connection of connections) {
    connection.send(request);
    void connection.closed.then(() => closed++);
  }
  await until(() => closed >= count / 20, { what: "connections that the server closes" });
  return {
    [Symbol.dispose]() {
      for (const connection of connections) connection[Symbol.dispose]();
    },
  };
};

const fetchStatus = async (url: URL, path: string, timeoutMs: number, tls?: { ca: string }): Promise<number> => {
  const { status } = await fetch(new URL(path, url), { signal: AbortSignal.timeout(timeoutMs), ...(tls && { tls }) });
  return status;
};

/** Stops the server properly, and returns its logged warnings and errors. */
const stopAndListProblems = async (serve: ServeProcess): Promise<string[]> => {
  serve.child.kill("SIGTERM");
  expect(await serve.child.exited).toBe(0);
  const lines = (await serve.errors).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line)).map(({ message }: { message: string }) => message);
};

const LOWERED_MESSAGE = expect.stringMatching(/max_connections is lowered .* Raise LimitNOFILE/);
const RUNS_OUT_MESSAGE = expect.stringMatching(/file descriptors run out.* Raise LimitNOFILE/);

test.each([64, 256, 1024])(
  "[HT-34] with a limit of %i open files, the server survives ten times as many half-open connections",
  async (openFiles) => {
    for (let i = 0; i < FLOODS; i++) {
      using directory = tempDirectory();
      await using serve = await startServe(directory.path, {}, { openFiles });
      {
        using _flood = await openFlood(serve.url, 10 * openFiles, partialRequest);
        expect(await fetchStatus(serve.url, "/readyz", 15_000)).toBe(200);
      }
      expect(await fetchStatus(serve.url, "/readyz", 5_000)).toBe(200);
      expect(await stopAndListProblems(serve)).toEqual([LOWERED_MESSAGE, RUNS_OUT_MESSAGE]);
    }
  },
  scaleTimeout(60_000 * FLOODS),
);

testNeeding(
  [needs.openssl],
  "[HT-34] over TLS, the server closes silent connections, and other clients can connect",
  async () => {
    using directory = tempDirectory();
    const { cert, key } = await makeCertificate(directory.path, "here");
    const files = { SLIPWAY_TLS_CERT_FILE: cert, SLIPWAY_TLS_KEY_FILE: key };
    await using serve = await startServe(directory.path, files, { openFiles: 128 });
    const tls = { ca: await Bun.file(cert).text() };
    expect(await fetchStatus(serve.url, "/readyz", 5_000, tls)).toBe(200);
    using _flood = await openFlood(serve.url, 1280, "");
    expect(await fetchStatus(serve.url, "/readyz", 15_000, tls)).toBe(200);
    // A slow machine closes idle connections as fast as their handshakes complete, so the limit is not reached.
    const [lowered, ...otherProblems] = await stopAndListProblems(serve);
    expect(lowered).toEqual(LOWERED_MESSAGE);
    expect(otherProblems.length).toBeLessThanOrEqual(1);
    for (const line of otherProblems) expect(line).toEqual(RUNS_OUT_MESSAGE);
  },
);

test("[HT-10] times out headers that arrive a byte at a time", async () => {
  await using server = await startTestServer();
  using slow = new RawConnection(server.url);
  slow.send(partialRequest);
  const startedMs = performance.now();
  await until(() => {
    if (!slow.socket.closed) slow.send("a");
    return slow.socket.closed;
  });
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  expect(slow.received).toBe("");
});
