// Calls of real MCP servers with sessions that restart, forget their sessions, are slow, or send requests to the client.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Fetch } from "#src/mcp/fetch.ts";
import { McpPool } from "#src/mcp/pool.ts";
import { until } from "#test/support/until.ts";
import { type Refusal, startSessionHost } from "./session-host.ts";
import { startMcpHost } from "./support.ts";

const LIMITS = { silence_ms: 60_000, total_ms: 600_000 };
const neverAborted = new AbortController().signal;
const getErrorMessage = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: Error) => error.message,
  );

/** A pool, and calls of one server in it. */
const openPool = (url: string, kind: "http" | "sse" = "http", poolFetch: Fetch = fetch) => {
  const pool = new McpPool({ clock: systemClock, fetch: poolFetch });
  const target = { key: url, url: new URL(url), kind, headers: {} };
  const call = (tool: string, { signal = neverAborted, limits = LIMITS } = {}) =>
    pool.call(async () => target, tool, {}, { signal, limits });
  return { pool, target, call, [Symbol.asyncDispose]: () => pool.stop() };
};

for (const refusal of ["404", "400", "200"] satisfies Refusal[]) {
  test(`[MC-11] a server that has forgotten the session and answers ${refusal} gets the same call again in a new session`, async () => {
    await using host = startSessionHost({ refusal });
    await using opened = openPool(host.url);
    expect((await opened.call("hello")).result).toEqual({ output: "hello 1" });
    host.forget();
    const both = await Promise.all([opened.call("hello"), opened.call("hello")]);
    expect(both.map(({ result }) => result.output)).toEqual(["hello 2", "hello 2"]);
    expect(host.called).toEqual(["hello", "hello", "hello"]);
    // A new chat uses the open connection.
    expect((await opened.pool.connectInTime(opened.target, neverAborted)).isOpen).toBe(true);
    expect(host.begun).toBe(2);
  });
}

test("[MC-11] a server that was down is reconnected by the next call, and an interrupted call ends immediately", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  await opened.call("hello");
  const startedAt = performance.now();
  expect(await getErrorMessage(opened.call("die"))).not.toBe("");
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  host.forget();
  host.start();
  expect((await opened.call("hello")).result).toEqual({ output: "hello 2" });
});

test("[MC-12] progress keeps a call alive, a call without progress is ended, a call that exceeds the total limit is ended too, and the server is notified", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const slow = await opened.call("slow", { limits: { silence_ms: 900, total_ms: 60_000 } });
  expect(slow.result).toEqual({ output: "hello 1" });
  expect(await getErrorMessage(opened.call("slow", { limits: { silence_ms: 800, total_ms: 1_000 } }))).toBe(
    "it did not answer within 1 s",
  );
  expect(await getErrorMessage(opened.call("silent", { limits: { silence_ms: 300, total_ms: 60_000 } }))).toBe(
    "it did not answer within 0.3 s",
  );
  // The cancellation of the previous call may also arrive.
  await until(() => host.cancelled.length > 0);
  const interrupt = new AbortController();
  const waiting = getErrorMessage(opened.call("silent", { signal: interrupt.signal }));
  await until(() => host.called.filter((name) => name === "silent").length === 2);
  const canceled = host.cancelled.length;
  interrupt.abort(new Error("enough"));
  expect(await waiting).toBe("enough");
  await until(() => host.cancelled.length > canceled);
});

test("[MC-13] a changed list of tools is reloaded for the next step", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const listNames = async () =>
    (await (await opened.pool.connectInTime(opened.target, neverAborted)).getTools()).map(({ name }) => name);
  expect(await listNames()).not.toContain("late");
  await opened.call("grow");
  await until(async () => (await listNames()).includes("late"));
});

test("[MC-14] requests for features that were not offered are refused with an explanation", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const { result } = await opened.call("ask");
  expect(result.output).toBe('{"action":"decline"} / Slipway runs no models for MCP servers.');
});

test("[MC-3] a server of the older protocol under a plain URL is detected by its 4xx, and errors unrelated to the protocol are passed on", async () => {
  await using host = startMcpHost();
  host.refuse = (request) =>
    request.method === "POST" && new URL(request.url).pathname === "/sse"
      ? new Response("", { status: 405 })
      : undefined;
  await using opened = openPool(`${host.url}/sse`);
  expect((await opened.call("echo")).result).toEqual({ output: "{}" });
  await using locked = startMcpHost();
  locked.refuse = () => new Response("no key", { status: 401 });
  await using refused = openPool(`${locked.url}/sse`);
  expect(await getErrorMessage(refused.call("echo"))).toBe("it answered 401: no key");
  expect(locked.seen).toHaveLength(1);
});

test("[MC-11] a connection of the older protocol ends with its stream: the waiting call fails immediately, and the next one has a new stream", async () => {
  await using host = startMcpHost();
  const cuts: AbortController[] = [];
  const cutting = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const { body, status, headers } = await fetch(url, init);
    if (init?.method === "POST" || !body) return new Response(body, { status, headers });
    const cut = new AbortController();
    cuts.push(cut);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    void body.pipeTo(writable, { signal: cut.signal }).catch(() => {});
    return new Response(readable, { status, headers });
  };
  await using opened = openPool(`${host.url}/sse`, "sse", cutting);
  expect((await opened.call("echo")).result).toEqual({ output: "{}" });
  const before = host.seen.length;
  const waiting = getErrorMessage(opened.call("wait"));
  await until(() => host.seen.length > before);
  cuts[0]?.abort();
  expect(await waiting).not.toBe("");
  expect((await opened.call("echo")).result).toEqual({ output: "{}" });
  expect(cuts).toHaveLength(2);
});
