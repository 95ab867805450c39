import { afterEach, describe, expect, test } from "bun:test";
import { create } from "@bufbuild/protobuf";
import { watchApps } from "#src/daemon/apps.ts";
import type { AgentApi } from "#src/daemon/connection/connection.ts";
import { parseTraffic, reportStats } from "#src/daemon/connection/stats.ts";
import { ProcessGroups } from "#src/daemon/scripts/groups.ts";
import { collectMetadata } from "#src/daemon/scripts/metadata.ts";
import type { Script, ScriptRunner } from "#src/daemon/scripts/script-runner.ts";
import { runCron } from "#src/daemon/scripts/scripts.ts";
import { ManifestSchema, WorkspaceAgentScriptSchema } from "#src/wire/gen/agent_pb.ts";
import { until } from "#test/support/until.ts";
import { nextTurn, WatchedClock } from "./support/clock.ts";
import { tempFolder } from "./support/daemon.ts";
import { bytes } from "./support/server.ts";

const folder = tempFolder();
const stops: AbortController[] = [];
afterEach(() => {
  for (const controller of stops.splice(0)) controller.abort();
});
const createSignal = (): AbortSignal => {
  const controller = new AbortController();
  stops.push(controller);
  return controller.signal;
};

/** Metadata descriptions have their whole seconds in the field for nanoseconds. */
const metadataSeconds = (count: number) => ({ seconds: 0n, nanos: count });
const toDuration = (count: number) => ({ seconds: BigInt(count), nanos: 0 });
type Init = Parameters<typeof create<typeof ManifestSchema>>[1];
const manifest = (init: Init) => create(ManifestSchema, init);

/** Returns a connection that records the calls of one method. `waitForCalls` waits without advancing the clock. */
const recordCalls = <T>(method: keyof AgentApi, answer: unknown = {}) => {
  const calls: T[] = [];
  const api = {
    [method]: async (request: T) => {
      calls.push(request);
      return answer;
    },
  } as unknown as AgentApi;
  const waitForCalls = async (count: number): Promise<T[]> => {
    await until(() => calls.length >= count);
    return calls;
  };
  const ask = <R>(call: (api: AgentApi, abort: AbortSignal) => Promise<R>): Promise<R> =>
    call(api, new AbortController().signal);
  return { connection: { ask }, calls, waitForCalls };
};

describe("metadata", () => {
  type Request = { metadata: { key: string; result: { value: string; error: string } }[] };
  const collectOnce = async (script: string, options: object = {}, onStart = async (_: WatchedClock) => {}) => {
    const clock = new WatchedClock();
    const { connection, waitForCalls } = recordCalls<Request>("batchUpdateMetadata");
    collectMetadata(
      manifest({ metadata: [{ key: "k", script, interval: metadataSeconds(10), ...options }] }).metadata,
      {
        connection,
        clock,
        signal: createSignal(),
        env: { PATH: process.env.PATH ?? "" },
        directory: folder.path,
        groups: new ProcessGroups({ clock, agent_id: "t" }),
      },
    );
    await onStart(clock);
    const [first] = await waitForCalls(1);
    return { result: first?.metadata[0]?.result, waitForCalls, clock };
  };

  test("[DM-14] is collected at its interval, trimmed, and sent", async () => {
    const { result, waitForCalls, clock } = await collectOnce("echo '  42  '; echo noise >&2");
    expect(result).toMatchObject({ value: "42", error: "" });
    for (const count of [2, 3]) {
      await clock.advance(9_999);
      expect((await waitForCalls(1)).length).toBe(count - 1);
      await clock.advance(1);
      await waitForCalls(count);
    }
  });

  test("[DM-14] accepts intervals and timeouts in the unit of upstream agents and that of earlier servers", async () => {
    const everyTwoSeconds = await collectOnce("echo x", { interval: { seconds: 0n, nanos: 2 } });
    await everyTwoSeconds.clock.advance(1_999);
    expect((await everyTwoSeconds.waitForCalls(1)).length).toBe(1);
    await everyTwoSeconds.clock.advance(1);
    await everyTwoSeconds.waitForCalls(2);
    const fromEarlierServer = await collectOnce("echo x", { interval: toDuration(2) });
    await fromEarlierServer.clock.advance(2_000);
    await fromEarlierServer.waitForCalls(2);
  });

  test("[DM-14] is truncated at 2048 bytes, never inside a character", async () => {
    const { result } = await collectOnce("printf 'x'; i=0; while [ $i -lt 3000 ]; do printf 'é'; i=$((i+1)); done");
    expect(result?.value).toBe(`x${"é".repeat(1023)}`);
  });

  test("[DM-14] that fails or takes too long reports it", async () => {
    expect((await collectOnce("echo half; echo broken >&2; exit 3")).result).toMatchObject({
      value: "half",
      error: "exit code 3: broken",
    });
    expect(
      (await collectOnce("sleep 300", { timeout: toDuration(2) }, (clock) => clock.advance(2_000))).result,
    ).toMatchObject({
      value: "",
      error: "timed out after 2 s",
    });
  });
});

describe("app health", () => {
  test("[DM-14] reports changes: unhealthy after the threshold but not during start scripts, healthy immediately", async () => {
    let status = 503;
    let isStarting = true;
    const checkedStatuses: number[] = [];
    const app = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      // When an idle connection is closed, fetch sends its request again, which would count twice.
      idleTimeout: 0,
      fetch() {
        checkedStatuses.push(status);
        return new Response("x", { status });
      },
    });
    const clock = new WatchedClock();
    type Request = { updates: { id: Uint8Array; health: number }[] };
    const { connection, calls, waitForCalls } = recordCalls<Request>("batchUpdateAppHealths");
    const healthcheck = { url: app.url.href, interval: toDuration(5), threshold: 3 };
    const apps = [
      { id: bytes(1), slug: "web", health: 2, healthcheck },
      { id: bytes(2), slug: "off", health: 1, healthcheck: { url: "" } },
    ];
    watchApps(manifest({ apps }).apps, {
      connection,
      clock,
      signal: createSignal(),
      isStarting: () => isStarting,
    });
    // Each round has two waits of five seconds: the timeout of a response, and the delay before the next round.
    let rounds = 1;
    const finishRound = async (): Promise<void> => {
      await until(() => clock.delays.filter((ms) => ms === 5_000).length === 2 * rounds);
      rounds += 1;
      await clock.advance(5_000);
    };
    // While a start script may still be installing the app, missing responses are not failures.
    for (let check = 0; check < 4; check++) await finishRound();
    expect(calls).toEqual([]);
    isStarting = false;
    status = 200;
    await finishRound();
    await waitForCalls(1);
    expect(calls[0]?.updates).toMatchObject([{ id: bytes(1), health: 3 }]);
    status = 500;
    await finishRound();
    await finishRound();
    await finishRound();
    await waitForCalls(2);
    expect(calls[1]?.updates).toMatchObject([{ health: 4 }]);
    expect(checkedStatuses.filter((checked) => checked === 500).length).toBe(3);
    status = 404;
    await finishRound();
    await waitForCalls(3);
    expect(calls[2]?.updates).toMatchObject([{ health: 3 }]);
    expect(checkedStatuses.filter((checked) => checked === 404).length).toBe(1);
    await app.stop(true);
    await finishRound();
    await finishRound();
    await finishRound();
    await waitForCalls(4);
    expect(calls[3]?.updates).toMatchObject([{ health: 4 }]);
  });
});

describe("statistics", () => {
  const netDev = (rx: number, tx: number): string =>
    [
      "Inter-|   Receive                                                |  Transmit",
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed",
      "    lo: 999999 99 0 0 0 0 0 0 999999 99 0 0 0 0 0 0",
      `  eth0: ${rx} ${rx / 10} 0 0 0 0 0 0 ${tx} ${tx / 10} 0 0 0 0 0 0`,
      "  eth1:5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0",
    ].join("\n");

  test("[DM-15] count everything but loopback", () => {
    expect(parseTraffic(netDev(100, 200))).toEqual({
      rx_bytes: 105n,
      rx_packets: 11n,
      tx_bytes: 207n,
      tx_packets: 21n,
    });
    expect(parseTraffic("")).toEqual({ rx_bytes: 0n, rx_packets: 0n, tx_bytes: 0n, tx_packets: 0n });
  });

  test("[DM-15] first request the interval, then report increments, and never invent a number when one is unknown", async () => {
    const clock = new WatchedClock();
    type Request = { stats?: { rxBytes: bigint; txBytes: bigint } };
    const answer = { reportInterval: toDuration(30) };
    const { connection, calls, waitForCalls } = recordCalls<Request>("updateStats", answer);
    const trafficTables = [netDev(100, 200), netDev(150, 1200), undefined, netDev(10, 10)];
    const sessions = { ssh: 0, vscode: 0, jetbrains: 0 };
    const closed = { terminals: 0, streams: 0, moved_bytes: 0, sessions, typed: 1, countIdleSessions: () => 0 };
    const openConnections = [
      {
        ...closed,
        terminals: 2,
        typed: 1,
        streams: 1,
        sessions: { ssh: 1, vscode: 2, jetbrains: 0 },
        countIdleSessions: () => 2,
      },
    ];
    const latencies = [12.5, undefined];
    void reportStats({
      connection,
      clock,
      signal: createSignal(),
      read: () => trafficTables.shift(),
      open: () => openConnections.shift() ?? closed,
      latency: async () => latencies.shift(),
    });
    await waitForCalls(1);
    await clock.advance(30_000);
    await clock.advance(30_000);
    await waitForCalls(3);
    expect(calls[0]).toEqual({});
    expect(calls[1]).toEqual({
      stats: {
        rxBytes: 50n,
        rxPackets: 5n,
        txBytes: 1000n,
        txPackets: 100n,
        connectionCount: 6n,
        connectionsByProto: { TCP: 1n },
        sessionCountReconnectingPty: 2n,
        sessionCountSsh: 1n,
        sessionCountVscode: 2n,
        sessionCountJetbrains: 0n,
        connectionMedianLatencyMs: 12.5,
        // The stream and two of the sessions were idle; someone has typed into a terminal.
        metrics: [{ name: "slipway_idle_streams", type: 2, value: 3, labels: [] }],
      } as never,
    });
    expect(calls[2]).toEqual({
      stats: {
        rxBytes: 0n,
        rxPackets: 0n,
        txBytes: 0n,
        txPackets: 0n,
        connectionCount: 0n,
        connectionsByProto: {},
        sessionCountReconnectingPty: 0n,
        sessionCountSsh: 0n,
        sessionCountVscode: 0n,
        sessionCountJetbrains: 0n,
        connectionMedianLatencyMs: -1,
        metrics: [],
      } as never,
    });
  });
});

describe("cron", () => {
  const cronScript = (cron: string): Script => create(WorkspaceAgentScriptSchema, { cron, displayName: "c" });
  const runner = (run: () => Promise<"ok">): ScriptRunner => ({ run }) as unknown as ScriptRunner;

  test("[DM-13] runs at its minutes, and skips runs during a previous one", async () => {
    const clock = new WatchedClock();
    const times: number[] = [];
    const releases: (() => void)[] = [];
    const run = (): Promise<"ok"> => {
      times.push(clock.now() / 60_000);
      return times.length === 2 ? new Promise((resolve) => releases.push(() => resolve("ok"))) : Promise.resolve("ok");
    };
    const controller = new AbortController();
    const running = runCron(cronScript("*/10 * * * *"), runner(run), { clock, signal: controller.signal });
    await clock.advance(35 * 60_000);
    expect(times).toEqual([10, 20]);
    releases[0]?.();
    await nextTurn();
    await clock.advance(15 * 60_000);
    expect(times).toEqual([10, 20, 40, 50]);
    controller.abort();
    await running;
    expect(clock.timers).toBe(0);
  });

  test("[DM-13] waits longer than a timer can, and ignores an invalid cron expression", async () => {
    const clock = new WatchedClock();
    let runs = 0;
    const run = async (): Promise<"ok"> => {
      runs += 1;
      return "ok";
    };
    await runCron(cronScript("every day"), runner(run), { clock, signal: createSignal() });
    void runCron(cronScript("0 12 1 6 *"), runner(run), { clock, signal: createSignal() });
    await clock.advance(100 * 86_400_000);
    expect(runs).toBe(0);
    await clock.advance(60 * 86_400_000);
    expect(runs).toBe(1);
  });
});
