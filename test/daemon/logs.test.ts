import { describe, expect, test } from "bun:test";
import { type AgentApi, DaemonStopped } from "#src/daemon/connection/connection.ts";
import { Logs } from "#src/daemon/scripts/logs.ts";
import { RpcError } from "#src/wire/drpc/frame.ts";
import { nextTurn, runUntil, WatchedClock } from "./support/clock.ts";
import { startDaemon } from "./support/daemon.ts";
import { bytes, RecordingServer, script } from "./support/server.ts";

type Batch = { batchId: Uint8Array; logs: { output: string }[] };

/** Returns a connection that responds with `answer`, and the batches that it has received. */
const openConnection = (answer: (batch: Batch) => unknown = () => ({})) => {
  const batches: Batch[] = [];
  const api = {
    batchCreateLogs: async (batch: Batch) => {
      batches.push(batch);
      return (await answer(batch)) ?? {};
    },
  } as unknown as AgentApi;
  const ask = <T>(call: (api: AgentApi, signal: AbortSignal) => Promise<T>): Promise<T> =>
    call(api, new AbortController().signal);
  return { connection: { ask }, outputs: () => batches.map(({ logs }) => logs.map(({ output }) => output)), batches };
};

const line = (output: string) => ({ at: 0, level: "info" as const, output });
const numbers = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `${from + i}`);

describe("the shipping of log lines", () => {
  test("[DM-8] the first line is sent immediately, further ones within a quarter of a second together", async () => {
    const clock = new WatchedClock();
    const { connection, outputs } = openConnection();
    const source = new Logs({ connection, clock, random: () => 0 }).getSource(bytes(1));
    source.add(line("first"));
    await nextTurn();
    expect(outputs()).toEqual([["first"]]);
    source.add(line("second"));
    source.add(line("third"));
    await nextTurn();
    await clock.advance(249);
    expect(outputs()).toEqual([["first"]]);
    await clock.advance(1);
    expect(outputs()).toEqual([["first"], ["second", "third"]]);
    await clock.advance(1000);
    source.add(line("later"));
    await nextTurn();
    expect(outputs().at(-1)).toEqual(["later"]);
  });

  test("[DM-8] a full batch does not wait: a hundred lines, or 64 KiB", async () => {
    const clock = new WatchedClock();
    const { connection, outputs } = openConnection();
    const logs = new Logs({ connection, clock, random: () => 0 });
    const source = logs.getSource(bytes(1));
    for (const text of numbers(0, 250)) source.add(line(text));
    await nextTurn();
    expect(outputs()).toEqual([numbers(0, 100), numbers(100, 200)]);
    await clock.advance(250);
    expect(outputs().at(-1)).toEqual(numbers(200, 250));
    const other = logs.getSource(bytes(2));
    for (let i = 0; i < 5; i++) other.add(line("x".repeat(30_000)));
    await nextTurn();
    expect(outputs().map((batch) => batch.length)).toEqual([100, 100, 50, 2, 2]);
  });

  test("[DM-9] one batch per source is in flight, and sources do not wait for each other", async () => {
    const clock = new WatchedClock();
    const gate = Promise.withResolvers<void>();
    const { connection, outputs } = openConnection(({ logs }) => (logs[0]?.output === "0" ? gate.promise : {}));
    const logs = new Logs({ connection, clock, random: () => 0 });
    for (const text of numbers(0, 150)) logs.getSource(bytes(1)).add(line(text));
    logs.getSource(bytes(2)).add(line("other"));
    await nextTurn();
    expect(outputs()).toEqual([numbers(0, 100), ["other"]]);
    gate.resolve();
    await runUntil(clock, logs.flush());
    expect(outputs().at(-1)).toEqual(numbers(100, 150));
  });

  test("[DM-10] a refused batch is resent under the same ID, and dropped after minutes with a notice", async () => {
    const clock = new WatchedClock();
    let refusalsLeft = 3;
    const { connection, outputs, batches } = openConnection(() => {
      if (refusalsLeft-- > 0) throw new RpcError(0, "overloaded");
      return {};
    });
    const logs = new Logs({ connection, clock, random: () => 0 });
    logs.getSource(bytes(1)).add(line("kept"));
    await runUntil(clock, logs.flush());
    expect(outputs()).toEqual([["kept"], ["kept"], ["kept"], ["kept"]]);
    expect(new Set(batches.map(({ batchId }) => Buffer.from(batchId).toString("hex"))).size).toBe(1);
    refusalsLeft = 36;
    logs.getSource(bytes(1)).add(line("poison"));
    logs.getSource(bytes(1)).add(line("more poison"));
    await nextTurn();
    logs.getSource(bytes(1)).add(line("good"));
    const startedAt = clock.now();
    await runUntil(clock, logs.flush());
    expect(clock.now() - startedAt).toBeGreaterThan(120_000);
    expect(outputs().at(-1)).toEqual(["[slipway: 2 lines were dropped here, the server could not be reached]", "good"]);
  });

  test("[DM-11] while the server is unreachable, a source keeps the newest megabyte and counts the dropped lines", async () => {
    const clock = new WatchedClock();
    const gate = Promise.withResolvers<void>();
    const { connection, outputs } = openConnection(() => gate.promise);
    const logs = new Logs({ connection, clock, random: () => 0 });
    const text = (i: number): string => `${i} ${"y".repeat(962)}`.slice(0, 992);
    logs.getSource(bytes(1)).add(line("on its way"));
    await nextTurn();
    for (let i = 0; i < 5000; i++) logs.getSource(bytes(1)).add(line(text(i)));
    gate.resolve();
    await runUntil(clock, logs.flush());
    const sent = outputs().flat();
    expect(sent[0]).toBe("on its way");
    const dropped = Number(/^\[slipway: (\d+) lines were dropped/.exec(sent[1]!)?.[1]);
    expect(sent.slice(2)).toEqual(Array.from({ length: 5000 - dropped }, (_, i) => text(dropped + i)));
    const keptBytes = sent.slice(2).reduce((sum, text) => sum + text.length + 32, 0);
    expect(keptBytes).toBeLessThanOrEqual(1024 * 1024);
    expect(keptBytes).toBeGreaterThan(1024 * 1024 - 2048);
  });

  test("[DM-12] sends nothing more after the server reports that its log limit is exceeded", async () => {
    const clock = new WatchedClock();
    const { connection, outputs } = openConnection(() => ({ logLimitExceeded: true }));
    const logs = new Logs({ connection, clock, random: () => 0 });
    for (const text of numbers(0, 150)) logs.getSource(bytes(1)).add(line(text));
    await nextTurn();
    logs.getSource(bytes(1)).add(line("more"));
    logs.getSource(bytes(2)).add(line("others"));
    await runUntil(clock, logs.flush());
    expect(outputs()).toEqual([numbers(0, 100)]);
  });

  test("[DM-9] a stopping daemon drops the lines that it cannot deliver", async () => {
    const ask = () => Promise.reject(new DaemonStopped());
    const logs = new Logs({ connection: { ask }, clock: new WatchedClock(), random: () => 0 });
    logs.getSource(bytes(1)).add(line("x"));
    await logs.flush();
  });
});

describe("lines over broken connections", () => {
  const countingScript = (to: number) => `i=0; while [ $i -lt ${to} ]; do echo $i; i=$((i+1)); done`;
  const expectedLines = (to: number) => numbers(0, to).map((text) => `info ${text}`);

  test("[DM-10] a connection that breaks before or after the server stores a batch neither loses nor duplicates lines", async () => {
    await using server = new RecordingServer();
    server.manifest = { scripts: [script(countingScript(1000))] };
    const breakAtCalls = (callNumbers: readonly number[]) => (method: string) => {
      if (method !== "batchCreateLogs" || !callNumbers.includes(server.calls("batchCreateLogs").length)) return;
      server.dropConnections();
      throw new Error("cut");
    };
    server.before = breakAtCalls([2, 6]);
    server.after = breakAtCalls([4, 5, 9]);
    await using _daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length >= 1000);
    expect(server.lines()).toEqual(expectedLines(1000));
    expect(server.upgradeRequests.length).toBeGreaterThan(4);
    expect(server.calls("getManifest").length).toBe(server.upgradeRequests.length);
  });

  test("[DM-5][DM-10] a server that is down while a script runs receives everything afterwards", async () => {
    await using server = new RecordingServer();
    server.manifest = {
      scripts: [script(`echo begin; until [ -e "$HOME/go" ]; do sleep 0.02; done; ${countingScript(500)}`)],
    };
    await using daemon = startDaemon({ url: server.url });
    await server.until(() => server.lines().length === 1 && server.states.length === 1);
    server.status = 503;
    server.dropConnections();
    await server.until(({ upgradeRequests }) => upgradeRequests.length >= 2);
    await Bun.write(`${daemon.home}/go`, "");
    await server.until(({ upgradeRequests }) => upgradeRequests.length >= 5);
    expect(server.states).toEqual(["starting"]);
    server.status = 101;
    await server.until(() => server.lines().length >= 501);
    expect(server.lines()).toEqual(["info begin", ...expectedLines(500)]);
    await server.until(({ states }) => states.includes("ready"));
    expect(server.calls("scriptCompleted").length).toBe(1);
    const times = server
      .calls("updateLifecycle")
      .map(({ request }) => (request as { lifecycle: { changedAt: { seconds: bigint } } }).lifecycle.changedAt);
    server.dropConnections();
    const states = await server.until(({ states }) => states.length > times.length && states);
    expect(states.at(-1)).toBe("ready");
    expect(server.calls("updateLifecycle").at(-1)?.request).toMatchObject({ lifecycle: { changedAt: times.at(-1)! } });
  });
});
