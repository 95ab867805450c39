// Calls to real MCP servers that restart, forget their sessions, are slow, or send requests to the client.
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

/** Opens a pool and returns a function that calls the tools of one server. */
const openPool = (url: string, kind: "http" | "sse" = "http", poolFetch: Fetch = fetch) => {
  const pool = new McpPool({ clock: systemClock, fetch: poolFetch });
  const target = { key: url, url: new URL(url), kind, headers: {} };
  const call = (tool: string, { signal = neverAborted, limits = LIMITS } = {}) =>
    pool.call(async () => target, tool, {}, { signal, limits });
  return { pool, target, call, [Symbol.asyncDispose]: () => pool.stop() };
};

for (const refusal of ["404", "400", "200"] satisfies Refusal[]) {
  test(`[MC-11] repeats a call in a new session after the server has forgotten the old one and answers ${refusal}`, async () => {
    await using host = startSessionHost({ refusal });
    await using opened = openPool(host.url);
    expect((await opened.call("hello")).result).toEqual({ output: "hello 1" });
    host.forget();
    const answers = await Promise.all([opened.call("hello"), opened.call("hello")]);
    expect(answers.map(({ result }) => result.output)).toEqual(["hello 2", "hello 2"]);
    expect(host.calledTools).toEqual(["hello", "hello", "hello"]);
    // A new chat uses the open connection.
    expect((await opened.pool.connectInTime(opened.target, neverAborted)).isOpen).toBe(true);
    expect(host.sessionCount).toBe(2);
  });
}

test("[MC-11] a call fails immediately when its server stops, and the next call reconnects", async () => {
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

test("[MC-12] progress keeps a call alive; calls without progress or beyond the total limit are canceled at the server", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const slow = await opened.call("slow", { limits: { silence_ms: 900, total_ms: 60_000 } });
  expect(slow.result).toEqual({ output: "hello 1" });
  const beyondTotal = opened.call("slow", { limits: { silence_ms: 800, total_ms: 1_000 } });
  expect(await getErrorMessage(beyondTotal)).toBe("it did not answer within 1 s");
  const withoutProgress = opened.call("silent", { limits: { silence_ms: 300, total_ms: 60_000 } });
  expect(await getErrorMessage(withoutProgress)).toBe("it did not answer within 0.3 s");
  // The cancellation of the previous call may also arrive.
  await until(() => host.canceledTools.length > 0);
  const interrupt = new AbortController();
  const waiting = getErrorMessage(opened.call("silent", { signal: interrupt.signal }));
  await until(() => host.calledTools.filter((name) => name === "silent").length === 2);
  const canceledBefore = host.canceledTools.length;
  interrupt.abort(new Error("enough"));
  expect(await waiting).toBe("enough");
  await until(() => host.canceledTools.length > canceledBefore);
});

test("[MC-13] reloads a changed list of tools for the next step", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const listNames = async () =>
    (await (await opened.pool.connectInTime(opened.target, neverAborted)).getTools()).map(({ name }) => name);
  expect(await listNames()).not.toContain("late");
  await opened.call("grow");
  await until(async () => (await listNames()).includes("late"));
});

test("[MC-14] refuses requests for features that it has not offered, with an explanation", async () => {
  await using host = startSessionHost();
  await using opened = openPool(host.url);
  const { result } = await opened.call("ask");
  expect(result.output).toBe('{"action":"decline"} / Slipway runs no models for MCP servers.');
});

test("[MC-3] detects the older protocol by a 4xx status, and passes on errors that are unrelated to the protocol", async () => {
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

test("[MC-11] in the older protocol, a waiting call fails when its stream ends, and the next call opens a new stream", async () => {
  await using host = startMcpHost();
  const cuts: AbortController[] = [];
  const cuttableFetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const { body, status, headers } = await fetch(url, init);
    if (init?.method === "POST" || !body) return new Response(body, { status, headers });
    const cut = new AbortController();
    cuts.push(cut);
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    void body.pipeTo(writable, { signal: cut.signal }).catch(() => {});
    return new Response(readable, { status, headers });
  };
  await using opened = openPool(`${host.url}/sse`, "sse", cuttableFetch);
  expect((await opened.call("echo")).result).toEqual({ output: "{}" });
  const requestsBefore = host.seen.length;
  const waiting = getErrorMessage(opened.call("wait"));
  await until(() => host.seen.length > requestsBefore);
  cuts[0]?.abort();
  expect(await waiting).not.toBe("");
  expect((await opened.call("echo")).result).toEqual({ output: "{}" });
  expect(cuts).toHaveLength(2);
});
