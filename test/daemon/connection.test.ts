import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import { backoff } from "#base/retry.ts";
import { Connection, DaemonStopped } from "#src/daemon/connection/connection.ts";
import { dial } from "#src/daemon/connection/dial.ts";
import { RpcError } from "#src/wire/drpc/frame.ts";
import { findFreePort } from "#test/support/net/free-port.ts";
import { nextTurn, WatchedClock } from "./support/clock.ts";
import { TOKEN } from "./support/daemon.ts";
import { RecordingServer } from "./support/server.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const openConnection = (server: RecordingServer, clock: WatchedClock, random = () => 0) => {
  const connection = new Connection({
    url: server.url,
    token: { value: TOKEN, accept: () => {}, refuse: () => true },
    clock,
    random,
    greet: async (api, signal) => {
      await api.getManifest({}, signal);
    },
  });
  const running = connection.run();
  cleanups.push(async () => {
    connection.stop();
    await running;
  });
  return { connection, running };
};

/** Timeouts of a dial, a call, a ping, and of opening and closing a stream. Every other delay is a retry delay. */
const TIMEOUTS_MS = [30_000, 60_000, 15_000, 75_000, 300_000];

/** Skips every retry delay until the condition holds; returns the delays. */
const skipRetryDelays = async (clock: WatchedClock, condition: () => boolean): Promise<number[]> => {
  const listRetryDelays = (): number[] => clock.delays.filter((ms) => !TIMEOUTS_MS.includes(ms));
  for (let skipped = 0; !condition(); ) {
    // One delay at a time: a delay that is skipped late would also skip part of the next one.
    while (listRetryDelays().length === skipped && !condition()) await nextTurn();
    for (; skipped < listRetryDelays().length; skipped++) await clock.advance(listRetryDelays()[skipped]!);
  }
  return listRetryDelays();
};

describe("the connection", () => {
  test("[DM-2] the reconnect delay doubles, half of it random, up to the limit", () => {
    const failureCounts = [0, 1, 2, 3, 7, 50];
    expect(failureCounts.map((failures) => backoff(failures, 10_000, () => 0))).toEqual([
      50, 100, 200, 400, 5000, 5000,
    ]);
    expect(failureCounts.map((failures) => backoff(failures, 10_000, () => 0.999_999))).toEqual([
      100, 200, 400, 800, 10_000, 10_000,
    ]);
  });

  test("[DM-2] an unreachable server is retried indefinitely, at least every ten seconds", async () => {
    const server = new RecordingServer();
    cleanups.push(() => server[Symbol.asyncDispose]());
    server.status = 503;
    const clock = new WatchedClock();
    openConnection(server, clock, () => 0.5);
    const retryDelays = await skipRetryDelays(clock, () => server.upgradeRequests.length >= 12);
    expect(retryDelays.slice(0, 11)).toEqual([75, 150, 300, 600, 1200, 2400, 4800, 7500, 7500, 7500, 7500]);
  });

  test("[DM-3] retries a refused token every two seconds for ten minutes, then every minute, until it is valid", async () => {
    const server = new RecordingServer();
    cleanups.push(() => server[Symbol.asyncDispose]());
    server.status = 401;
    const clock = new WatchedClock();
    openConnection(server, clock, () => 0.5);
    const retryDelays = await skipRetryDelays(clock, () => server.upgradeRequests.length >= 403);
    expect(retryDelays.slice(0, 7)).toEqual([75, 150, 300, 600, 1200, 1500, 1500]);
    expect(retryDelays.slice(398, 402)).toEqual([1500, 1500, 45_000, 45_000]);
    server.status = 101;
    await skipRetryDelays(clock, () => server.calls("getManifest").length > 0);
  });

  test("[DM-1] a call waits for a connection, survives a broken one, and gets the server's refusal", async () => {
    const server = new RecordingServer();
    cleanups.push(() => server[Symbol.asyncDispose]());
    server.status = 503;
    const clock = new WatchedClock();
    const { connection } = openConnection(server, clock);
    const answer = connection.ask((api, signal) => api.updateStats({}, signal));
    await server.until(({ upgradeRequests }) => upgradeRequests.length > 0);
    let dropsLeft = 2;
    server.before = (method) => {
      if (method === "updateStats" && dropsLeft-- > 0) server.dropConnections();
    };
    server.status = 101;
    await skipRetryDelays(clock, () => server.calls("updateStats").length === 3);
    expect(await answer).toMatchObject({ reportInterval: { seconds: 0n } });
    expect(server.calls("updateStats").map(({ connection }) => connection)).toEqual([1, 2, 3]);
    server.before = () => {
      throw new RpcError(9, "not now");
    };
    await expect(connection.ask((api) => api.updateStats({}))).rejects.toMatchObject({ code: 9, message: "not now" });
  });

  test("[DM-1] an unanswered call closes the connection after a minute and is resent on the next", async () => {
    const server = new RecordingServer();
    cleanups.push(() => server[Symbol.asyncDispose]());
    const clock = new WatchedClock();
    const { connection } = openConnection(server, clock);
    const never = new Promise(() => {});
    server.before = (method) => (method === "updateStats" && server.calls("updateStats").length === 1 ? never : {});
    const answer = connection.ask((api, signal) => api.updateStats({}, signal));
    while (server.calls("updateStats").length === 0) await nextTurn();
    await clock.advance(60_000);
    await skipRetryDelays(clock, () => server.calls("updateStats").length === 2);
    await answer;
    expect(server.calls("updateStats").map(({ connection }) => connection)).toEqual([1, 2]);
  });

  test("[DM-1] pending calls fail when the daemon stops", async () => {
    const server = new RecordingServer();
    cleanups.push(() => server[Symbol.asyncDispose]());
    server.status = 503;
    const { connection, running } = openConnection(server, new WatchedClock());
    const answer = connection.ask((api) => api.updateStats({}));
    answer.catch(() => {});
    await server.until(({ upgradeRequests }) => upgradeRequests.length > 0);
    connection.stop();
    await running;
    await expect(answer).rejects.toBeInstanceOf(DaemonStopped);
    await expect(connection.ask((api) => api.updateStats({}))).rejects.toBeInstanceOf(DaemonStopped);
  });

  test("[DM-1] stopping does not wait for a server that accepts and stays silent", async () => {
    const silentServer = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    cleanups.push(() => silentServer.stop(true));
    const connection = new Connection({
      url: new URL(`http://127.0.0.1:${silentServer.port}`),
      token: { value: TOKEN, accept: () => {}, refuse: () => true },
      clock: systemClock,
      random: () => 0,
      greet: async () => {},
    });
    const running = connection.run();
    await nextTurn();
    connection.stop();
    await running;
  });
});

test("[CF-18] an unreachable server is named in the log with its address and the reason", async () => {
  const url = new URL(`http://127.0.0.1:${findFreePort()}/`);
  const { signal } = new AbortController();
  const failure = await dial({ url, token: "t", clock: systemClock, signal }).catch((error: unknown) => error);
  expect(String((failure as Error).message)).toBe(`${url.origin} is not reached: nothing listens there`);
});
