// SIGTERM to a real process in the middle of its work: the process rejects new requests, notifies clients, finishes running requests, and
// exits.
import { expect, test } from "bun:test";
import { type Clock, systemClock, type Timer } from "#base/clock.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { RawConnection } from "#test/support/net/raw.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { type SeededAgent, seedAgent } from "#test/support/seed.ts";
import { ADMIN, startTestServer, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { call, formatHead, readAnswer } from "./raw-http.ts";
import { startServe } from "./serve-process.ts";

const FOLLOWERS = 100;
const STREAMS = 20;

const LOGIN = "/api/v2/users/login";
const partialRequest = `${formatHead("POST", LOGIN, { "Content-Type": "application/json", "Content-Length": 12 })}{"email"`;

/** Creates a workspace and its agent in a data directory that a later process opens; undefined with the compiled binary. */
const seedDirectory = async (directory: string): Promise<SeededAgent | undefined> => {
  await using server = await startTestServer({ directory: `${directory}/data` });
  return server.context && (await seedAgent(server));
};

testSingleServer("process")(
  "[HT-19] a stopping server closes streams with a reason, finishes requests, rejects new ones, and exits with 0",
  async () => {
    using directory = tempDirectory();
    const seeded = await seedDirectory(directory.path);
    await using serve = await startServe(directory.path);
    const sockets: ClientSocket[] = [];
    const streams: Response[] = [];
    if (seeded) {
      const owner = new Client(serve.url, seeded.owner_token);
      const path = `/api/v2/workspaceagents/${seeded.agent_id}/logs?follow=true`;
      sockets.push(...(await Promise.all(Array.from({ length: FOLLOWERS }, () => owner.socket(path)))));
      for (let i = 0; i < STREAMS; i++) {
        streams.push(await owner.fetch("GET", `/api/v2/workspaces/${seeded.workspace_id}/watch`));
      }
      expect(streams.map(({ status }) => status)).toEqual(Array(STREAMS).fill(200));
    }
    using unfinished = new RawConnection(serve.url);
    unfinished.send(partialRequest);
    // Proves that the server has accepted the connection before it stops.
    await until(async () => (await call(serve.url, formatHead("GET", "/readyz")))?.status === 200);

    serve.child.kill("SIGTERM");
    await until(async () => (await call(serve.url, formatHead("GET", "/readyz")))?.status === 503);
    const rejected = await call(serve.url, formatHead("GET", "/api/v2/buildinfo"));
    expect(rejected?.status).toBe(503);
    expect(rejected?.headers.get("retry-after")).toBe("1");
    expect((await call(serve.url, formatHead("GET", "/healthz")))?.status).toBe(200);

    const closeEvents = await Promise.all(sockets.map(({ closed }) => closed));
    expect(closeEvents.filter(({ code }) => code !== 1001)).toEqual([]);
    expect(new Set(closeEvents.map(({ reason }) => reason)).size).toBeLessThanOrEqual(1);
    // Each stream must end; otherwise reading to the end would wait forever.
    await Promise.all(streams.map((stream) => stream.text().catch(() => "")));

    unfinished.send(":1}\r\n");
    expect((await readAnswer(unfinished))?.status).toBe(400);
    expect(await serve.child.exited).toBe(0);
  },
);

test("[HT-19] cuts off requests that exceed shutdown_timeout, and exits with 1", async () => {
  using directory = tempDirectory();
  await using serve = await startServe(directory.path, { SLIPWAY_SHUTDOWN_TIMEOUT: "500ms" });
  using unfinished = new RawConnection(serve.url);
  unfinished.send(partialRequest);
  await until(async () => (await call(serve.url, formatHead("GET", "/readyz")))?.status === 200);
  serve.child.kill("SIGTERM");
  expect(await serve.child.exited).toBe(1);
  expect(await serve.errors).toContain("shutdown_timeout");
});

/** The system's clock, which also lists its repeating timers. */
class WatchedClock implements Clock {
  readonly repeating = new Set<Timer>();
  readonly now = systemClock.now;
  readonly monotonic = systemClock.monotonic;
  readonly after = systemClock.after;

  every(ms: number, run: () => void): Timer {
    const timer = systemClock.every(ms, run);
    const watchedTimer: Timer = {
      cancel: () => {
        timer.cancel();
        this.repeating.delete(watchedTimer);
      },
    };
    this.repeating.add(watchedTimer);
    return watchedTimer;
  }
}

test("[HT-47] a stopped server leaves no timer that would keep it in memory", async () => {
  const clock = new WatchedClock();
  {
    await using server = await startTestServer({ clock });
    const admin = await new Client(server.url).signIn(ADMIN.email, ADMIN.password);
    using _socket = await admin.socket("/api/v2/chats/watch");
    expect(clock.repeating.size).toBeGreaterThan(0);
  }
  expect(clock.repeating.size).toBe(0);
});
