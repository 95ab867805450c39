// Large and stalled bodies of apps: they use limited memory, flow at the speed of the slower side, and do not block other requests.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { forFile } from "#test/support/for-file.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { until } from "#test/support/until.ts";
import { formatHead, readAnswer } from "../edge/raw-http.ts";
import { type Echo, startApp, startAppWorld } from "./app-world.ts";

const MiB = 1024 * 1024;
/** Increase for a soak test, for example to 2048 MiB. */
const DOWNLOAD_BYTES = 64 * MiB;
const world = await forFile(
  startAppWorld({
    apps: (port) => [
      { slug: "mine", url: `http://localhost:${port}` },
      { slug: "open", url: `http://localhost:${port}`, share: "public" },
    ],
  }),
);

const requestApp = (path: string, init: RequestInit = {}) =>
  world.get(world.path("mine", path), { ...(init as object), token: world.token });

const getResidentMiB = (): number => {
  Bun.gc(true);
  return process.memoryUsage.rss() / MiB;
};

describe("a body", () => {
  test("[AX-15] of any size arrives complete", async () => {
    const response = await requestApp(`/bytes?n=${DOWNLOAD_BYTES}`);
    let size = 0;
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) size += chunk.byteLength;
    expect(size).toBe(DOWNLOAD_BYTES);
  });

  test("[AX-15] that is not read applies backpressure, so that many of them use limited memory", async () => {
    const before = getResidentMiB();
    const stalled = Array.from({ length: 20 }, () => {
      const reader = new RawConnection(world.server.url);
      reader.socket.pause();
      const path = world.path("mine", `/bytes?n=${512 * MiB}`);
      reader.send(
        `GET ${path} HTTP/1.1\r\nHost: ${world.server.url.host}\r\nService-Session-Token: ${world.token}\r\n\r\n`,
      );
      return reader;
    });
    // The server still handles other requests. These also give the bodies time to arrive.
    for (let i = 0; i < 300; i += 1) expect((await requestApp("/x")).status).toBe(200);
    // Each of the 20 bodies of 512 MiB may fill its windows and buffers.
    expect(getResidentMiB() - before).toBeLessThan(400);
    for (const reader of stalled) reader[Symbol.dispose]();
  });

  test("[AX-15] arrives at the right one of hundreds of concurrent requests while others stall", async () => {
    const abort = new AbortController();
    const stalled = Array.from({ length: 5 }, () => requestApp("/stall", { signal: abort.signal }).catch(() => "cut"));
    const paths = Array.from({ length: 300 }, (_, i) => `/n/${i}?${"q".repeat(i + 1)}`);
    const echoes = await Promise.all(paths.map(async (path) => (await (await requestApp(path)).json()) as Echo));
    expect(echoes.map(({ path }) => path)).toEqual(paths);
    abort.abort();
    expect(await Promise.all(stalled)).toEqual(Array.from({ length: 5 }, () => "cut"));
  });

  test("[AX-27] that its app does not read counts toward the user's limit, without affecting other users", async () => {
    await using otherWorld = await startAppWorld({
      apps: (port) => [{ slug: "mine", url: `http://localhost:${port}` }],
    });
    const uploadSmall = ({ get, path, token }: typeof world) =>
      get(path("mine", "/digest"), { token, method: "POST", body: "a small one" });
    const head = formatHead("POST", world.path("mine", "/stall"), {
      Host: world.server.url.host,
      "Service-Session-Token": world.token,
      "Content-Length": 20 * MiB,
    });
    // More bytes than the limit for one user on any machine.
    const stalled = Array.from({ length: 140 }, () => new RawConnection(world.server.url));
    for (const connection of stalled) connection.send(head);
    const response = await Promise.race(stalled.map(readAnswer));
    expect([response?.status, response?.headers.get("retry-after")]).toEqual([503, expect.any(String)]);
    expect(response?.text).toContain("Too many large request bodies are being received.");
    expect((await uploadSmall(otherWorld)).status).toBe(200);
    const anonymousUpload = await world.get(world.path("open", "/digest"), {
      method: "POST",
      body: "x".repeat(200_000),
    });
    expect(await anonymousUpload.json()).toMatchObject({ size: 200_000 });
    for (const connection of stalled) connection[Symbol.dispose]();
    await until(async () => (await uploadSmall(world)).status === 200);
  });

  test("[AX-27] that arrives very slowly returns 408 when half of the memory for bodies is used", async () => {
    const clock = new ManualClock();
    await using ownWorld = await startAppWorld({
      clock,
      env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" },
      apps: (port) => [
        { slug: "open", url: `http://localhost:${port}`, share: "public" },
        { slug: "mine", url: `http://localhost:${port}` },
      ],
    });
    const startUpload = (address: number): RawConnection => {
      const connection = new RawConnection(ownWorld.server.url);
      const headers = {
        Host: ownWorld.server.url.host,
        "X-Forwarded-For": `203.0.113.${address}`,
        "Content-Length": 20 * MiB,
      };
      connection.send(`${formatHead("POST", ownWorld.path("open", "/digest"), headers)}x`);
      return connection;
    };
    const uploads = Array.from({ length: 140 }, (_, address) => startUpload(address));
    const isRejected = (connection: RawConnection): boolean => connection.received.startsWith("HTTP/1.1 503");
    // When one is rejected, half of the memory is in use, and the others have a time limit.
    await until(() => uploads.some(isRejected));
    const { token } = ownWorld;
    const upload = await ownWorld.get(ownWorld.path("mine", "/digest"), {
      token,
      method: "POST",
      body: "x".repeat(200_000),
    });
    expect(await upload.json()).toMatchObject({ size: 200_000 });
    clock.advance(30_000);
    const timedOut = await Promise.all(uploads.filter((connection) => !isRejected(connection)).map(readAnswer));
    expect(new Set(timedOut.map((response) => response?.status))).toEqual(new Set([408]));
    expect(timedOut[0]?.text).toContain("The request body arrives too slowly");
    for (const connection of uploads) connection[Symbol.dispose]();
  });

  test("[AX-27] does not count toward the limit after its app has read it", async () => {
    for (let i = 0; i < 300; i += 1) {
      const body = new Blob(["x".repeat(100_000)]).stream();
      const response = await requestApp("/digest", { method: "POST", body });
      expect(await response.json()).toMatchObject({ size: 100_000 });
    }
  });

  test("[AX-15] that is interrupted is cut off, instead of ending as if it were complete", async () => {
    await using ownWorld = await startAppWorld({ apps: (port) => [{ slug: "mine", url: `http://localhost:${port}` }] });
    const response = await ownWorld.get(ownWorld.path("mine", `/bytes?n=${512 * MiB}`), { token: ownWorld.token });
    const reader = response.body?.getReader();
    await reader?.read();
    await ownWorld.app[Symbol.asyncDispose]();
    const readToEnd = (async () => {
      while (!(await reader?.read())?.done);
      return "complete";
    })();
    expect(await readToEnd.catch(() => "cut")).toBe("cut");
  });
});

testNeeding([needs.openssl], "[AX-3] a port that speaks TLS is reached with any certificate", async () => {
  const folder = mkdtempSync(join(tmpdir(), "slipway-cert-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(key, "");
  const created = Bun.spawnSync([
    ...[needs.openssl.file, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=app"],
    ...["-keyout", key, "-out", cert],
  ]);
  expect(created.exitCode).toBe(0);
  await using tlsApp = await startApp(["0", cert, key]);
  const { token } = world;
  const app = `${tlsApp.port}s`;
  const echo = (await (await world.get(world.path(app, "/who"), { token })).json()) as Echo;
  expect(echo.path).toBe("/who");
  const body = new Uint8Array(500_000).fill(5);
  const digest = await world.get(world.path(app, "/digest"), { token, method: "POST", body });
  expect(await digest.json()).toMatchObject({ size: body.length });
  let size = 0;
  const download = await world.get(world.path(app, `/bytes?n=${8 * MiB}`), { token });
  for await (const chunk of download.body as unknown as AsyncIterable<Uint8Array>) size += chunk.byteLength;
  expect(size).toBe(8 * MiB);
  // For a port without TLS, the server returns an error.
  expect((await world.get(world.path(`${world.app.port}s`), { token })).status).toBe(502);
  rmSync(folder, { recursive: true });
});
