// Large and stalled bodies of apps use a bounded amount of memory, flow at the speed of the slower side, and do not block other requests.
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

const requestApp = (rest: string, init: RequestInit = {}) =>
  world.get(world.path("mine", rest), { ...(init as object), token: world.token });

const residentMiB = (): number => {
  Bun.gc(true);
  return process.memoryUsage.rss() / MiB;
};

describe("a body", () => {
  test("[AX-15] of any size arrives complete", async () => {
    const response = await requestApp(`/bytes?n=${DOWNLOAD_BYTES}`);
    let size = 0;
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) size += part.byteLength;
    expect(size).toBe(DOWNLOAD_BYTES);
  });

  test("[AX-15] that is not read applies backpressure: many of them use a bounded amount of memory", async () => {
    const before = residentMiB();
    const stalled = Array.from({ length: 20 }, () => {
      const reader = new RawConnection(world.server.url);
      reader.socket.pause();
      const path = world.path("mine", `/bytes?n=${512 * MiB}`);
      reader.send(
        `GET ${path} HTTP/1.1\r\nHost: ${world.server.url.host}\r\nService-Session-Token: ${world.token}\r\n\r\n`,
      );
      return reader;
    });
    // Other requests are served in the meantime, which also gives the bodies time to arrive.
    for (let i = 0; i < 300; i += 1) expect((await requestApp("/x")).status).toBe(200);
    // 20 bodies of 512 MiB; each may fill its windows and buffers.
    expect(residentMiB() - before).toBeLessThan(400);
    for (const reader of stalled) reader[Symbol.dispose]();
  });

  test("[AX-15] reaches the right one of hundreds of concurrent requests while others stall", async () => {
    const abort = new AbortController();
    const stalled = Array.from({ length: 5 }, () => requestApp("/stall", { signal: abort.signal }).catch(() => "cut"));
    const paths = Array.from({ length: 300 }, (_, i) => `/n/${i}?${"q".repeat(i + 1)}`);
    const answers = await Promise.all(paths.map(async (path) => (await (await requestApp(path)).json()) as Echo));
    expect(answers.map(({ path }) => path)).toEqual(paths);
    abort.abort();
    expect(await Promise.all(stalled)).toEqual(Array.from({ length: 5 }, () => "cut"));
  });

  test("[AX-27] that its app does not read is counted until it ends: too many of one user are refused, and other users are unaffected", async () => {
    await using other = await startAppWorld({ apps: (port) => [{ slug: "mine", url: `http://localhost:${port}` }] });
    const upload = ({ get, path, token }: typeof world) =>
      get(path("mine", "/digest"), { token, method: "POST", body: "a small one" });
    const head = formatHead("POST", world.path("mine", "/stall"), {
      Host: world.server.url.host,
      "Service-Session-Token": world.token,
      "Content-Length": 20 * MiB,
    });
    // More bytes than the limit of one user on a machine of any size.
    const stalled = Array.from({ length: 140 }, () => new RawConnection(world.server.url));
    for (const one of stalled) one.send(head);
    const refused = await Promise.race(stalled.map(readAnswer));
    expect([refused?.status, refused?.headers.get("retry-after")]).toEqual([503, expect.any(String)]);
    expect(refused?.text).toContain("Too many large request bodies are being received.");
    expect((await upload(other)).status).toBe(200);
    const large = await world.get(world.path("open", "/digest"), { method: "POST", body: "x".repeat(200_000) });
    expect(await large.json()).toMatchObject({ size: 200_000 });
    for (const one of stalled) one[Symbol.dispose]();
    await until(async () => (await upload(world)).status === 200);
  });

  test("[AX-27] that arrives very slowly is ended when half of the memory for bodies is in use, even if visitors use many addresses", async () => {
    const clock = new ManualClock();
    await using other = await startAppWorld({
      clock,
      env: { SLIPWAY_TRUSTED_PROXIES: "127.0.0.1" },
      apps: (port) => [
        { slug: "open", url: `http://localhost:${port}`, share: "public" },
        { slug: "mine", url: `http://localhost:${port}` },
      ],
    });
    const startUpload = (host: number): RawConnection => {
      const connection = new RawConnection(other.server.url);
      const headers = {
        Host: other.server.url.host,
        "X-Forwarded-For": `203.0.113.${host}`,
        "Content-Length": 20 * MiB,
      };
      connection.send(`${formatHead("POST", other.path("open", "/digest"), headers)}x`);
      return connection;
    };
    const slow = Array.from({ length: 140 }, (_, host) => startUpload(host));
    const isRefused = (one: RawConnection): boolean => one.received.startsWith("HTTP/1.1 503");
    // Once one is refused, half of the memory is in use, and the others have a time limit.
    await until(() => slow.some(isRefused));
    const { token } = other;
    const large = await other.get(other.path("mine", "/digest"), { token, method: "POST", body: "x".repeat(200_000) });
    expect(await large.json()).toMatchObject({ size: 200_000 });
    clock.advance(30_000);
    const ended = await Promise.all(slow.filter((one) => !isRefused(one)).map(readAnswer));
    expect(new Set(ended.map((one) => one?.status))).toEqual(new Set([408]));
    expect(ended[0]?.text).toContain("The request body arrives too slowly");
    for (const one of slow) one[Symbol.dispose]();
  });

  test("[AX-27] is no longer counted once its app has read it", async () => {
    for (let i = 0; i < 300; i += 1) {
      const body = new Blob(["x".repeat(100_000)]).stream();
      const answer = await requestApp("/digest", { method: "POST", body });
      expect(await answer.json()).toMatchObject({ size: 100_000 });
    }
  });

  test("[AX-15] that is interrupted is aborted, never ended as if it were complete", async () => {
    await using other = await startAppWorld({ apps: (port) => [{ slug: "mine", url: `http://localhost:${port}` }] });
    const response = await other.get(other.path("mine", `/bytes?n=${512 * MiB}`), { token: other.token });
    const reader = response.body?.getReader();
    await reader?.read();
    await other.app[Symbol.asyncDispose]();
    const rest = (async () => {
      while (!(await reader?.read())?.done);
      return "whole";
    })();
    expect(await rest.catch(() => "cut")).toBe("cut");
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
  await using secure = await startApp(["0", cert, key]);
  const { token } = world;
  for (const app of [`${secure.port}s`]) {
    const echo = (await (await world.get(world.path(app, "/who"), { token })).json()) as Echo;
    expect(echo.path).toBe("/who");
    const body = new Uint8Array(500_000).fill(5);
    const digest = await world.get(world.path(app, "/digest"), { token, method: "POST", body });
    expect(await digest.json()).toMatchObject({ size: body.length });
    let size = 0;
    const bytes = await world.get(world.path(app, `/bytes?n=${8 * MiB}`), { token });
    for await (const part of bytes.body as unknown as AsyncIterable<Uint8Array>) size += part.byteLength;
    expect(size).toBe(8 * MiB);
  }
  // A port that does not use TLS results in a clear error.
  expect((await world.get(world.path(`${world.app.port}s`), { token })).status).toBe(502);
  rmSync(folder, { recursive: true });
});
