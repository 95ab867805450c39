// Connections to real MCP servers, the connection pool, and the names and lists of tools.
import { expect, test } from "bun:test";
import { type Clock, systemClock } from "#base/clock.ts";
import { Outbound } from "#base/outbound.ts";
import { AnswerMemory } from "#base/system/answer-memory.ts";
import { MemoryShare } from "#base/system/memory-share.ts";
import { CONNECT_MS } from "#src/mcp/connection.ts";
import { toAnswer } from "#src/mcp/content.ts";
import type { Fetch } from "#src/mcp/fetch.ts";
import { countedFetch, openHttp } from "#src/mcp/http.ts";
import { isAllowed, toOfferedName } from "#src/mcp/names.ts";
import { McpPool, type McpTarget } from "#src/mcp/pool.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { until } from "#test/support/until.ts";
import { startMcpHost } from "./support.ts";

const makeFetch = (allowed: string[]): Fetch => {
  const outbound = new Outbound({ clock: systemClock, allowed, max_bytes: 1_000_000 });
  return (url, init) => outbound.open(new URL(url), init);
};
const localFetch = makeFetch(["127.0.0.0/8"]);
const LIMITS = { silence_ms: 60_000, total_ms: 600_000 };
const neverAborted = new AbortController().signal;
const getFailure = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: Error) => error.message,
  );

test("[MC-8] redacts secrets that a server repeats in answers, lists and errors", async () => {
  await using host = startMcpHost();
  const key = "MCPCANARY-778899";
  const headers = { authorization: `Bearer ${key}`, "x-other": `Basic ${btoa("me:horse-battery")}` };
  const target = { key: "one", url: new URL("/mcp", host.url), kind: "http", headers } as const;
  const pool = new McpPool({ clock: systemClock, fetch: localFetch });
  const call = (server: McpTarget, args: object) =>
    pool.call(async () => server, "echo", { ...args }, { signal: neverAborted, limits: LIMITS });
  const echoed = await call(target, { a: `${key}, ${btoa(key)} and horse-battery`, [key]: 1 });
  expect(JSON.stringify(echoed)).not.toMatch(new RegExp(`${key}|${btoa(key)}|battery`));
  expect(JSON.stringify(echoed)).toContain("[hidden]");
  await pool.stop();
  const message = `${"x".repeat(478)} ${key}`;
  const refusingFetch: Fetch = async () => Response.json({ error: { message } }, { status: 403 });
  const refusingPool = new McpPool({ clock: systemClock, fetch: refusingFetch });
  expect(await getFailure(refusingPool.connect(target))).toEndWith("x [hid");
  await refusingPool.stop();
});

test("[MC-3] both HTTP transports list and call tools, describe non-text results, and report a tool's failure", async () => {
  await using host = startMcpHost();
  for (const [kind, path] of [
    ["http", "/mcp"],
    ["sse", "/sse"],
  ] as const) {
    const headers = { "x-key": "secret" };
    const connection = await openHttp(systemClock, { url: new URL(path, host.url), kind, headers, fetch: localFetch });
    expect(connection.tools.map(({ name }) => name)).toContain("add");
    expect(await connection.call("add", { a: 1, b: 2 }, neverAborted, LIMITS)).toEqual({
      result: { output: "3" },
      is_error: false,
    });
    expect(await connection.call("fail", {}, neverAborted, LIMITS)).toEqual({
      result: { error: "that went wrong" },
      is_error: true,
    });
    expect(host.seen.every((sent) => sent.get("x-key") === "secret")).toBe(true);
    const stop = new AbortController();
    const waiting = connection.call("wait", {}, stop.signal, LIMITS).catch((error: Error) => error.message);
    stop.abort(new Error("enough"));
    expect(await waiting).toBe("enough");
    await connection.close();
    expect(connection.isOpen).toBe(false);
  }
  const blocks = [
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "resource", resource: { text: "in" } },
    { type: "resource", resource: { uri: "x:a", blob: "JVBERg==", mimeType: "application/pdf" } },
    { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  ];
  const structuredContent = { n: 1 };
  expect(toAnswer({ content: blocks, structuredContent })).toEqual({
    result: {
      output: "[image image/png, 3 bytes]\nin\n[resource x:a application/pdf]\n[audio audio/wav, 3 bytes]",
      structured_content: { n: 1 },
    },
    is_error: false,
    files: [
      { media_type: "image/png", data: "AAAA" },
      { media_type: "application/pdf", data: "JVBERg==" },
    ],
  });
});

test("[MC-7] refuses private addresses outside allowed networks, and does not follow redirects to other origins", async () => {
  await using host = startMcpHost();
  await using otherHost = startMcpHost();
  const open = (fetch: Fetch) =>
    openHttp(systemClock, { url: new URL("/mcp", host.url), kind: "http", headers: { authorization: "k" }, fetch });
  expect(await getFailure(open(makeFetch([])))).toContain("not a public address");
  expect(host.seen).toEqual([]);
  host.refuse = () => Response.redirect(`${otherHost.url}/mcp`, 307);
  expect(await getFailure(open(localFetch))).not.toBe("");
  expect(otherHost.seen).toEqual([]);
});

test("[MC-4] shares connections, retries a failed server after 30 s, and gives up on a silent server after 30 s", async () => {
  await using host = startMcpHost();
  const clock = new ManualClock();
  const pool = new McpPool({ clock, fetch: localFetch });
  const target = { key: "a", url: new URL("/mcp", host.url), kind: "http" as const, headers: {} };
  const firstConnection = await pool.connect(target);
  expect(await pool.connect(target)).toBe(firstConnection);
  await firstConnection.close();
  const secondConnection = await pool.connect(target);
  expect(secondConnection).not.toBe(firstConnection);
  clock.advance(5 * 60_000 + 1);
  pool.sweep();
  expect(await pool.connect(target)).not.toBe(secondConnection);
  host.refuse = () => new Response("no", { status: 500 });
  const broken = { ...target, key: "b" };
  expect(await getFailure(pool.connect(broken))).not.toBe("");
  const requestsBefore = host.seen.length;
  expect(await getFailure(pool.connect(broken))).not.toBe("");
  expect(host.seen.length).toBe(requestsBefore);
  host.refuse = undefined;
  clock.advance(30_001);
  expect((await pool.connect(broken)).isOpen).toBe(true);
  const pendingResponse = Promise.withResolvers<Response>();
  const silentPool = new McpPool({ clock, fetch: () => pendingResponse.promise });
  const timeout = getFailure(silentPool.connect(target));
  clock.advance(CONNECT_MS + 1);
  expect(await timeout).toBe("did not answer within 30 s");
  await pool.stop();
  expect(await getFailure(pool.connect({ ...target, key: "c" }))).toBe("The server stops.");
});

test("[MC-16] rejects an answer or a stream event with too many values", async () => {
  const readAnswer = (type: string, ...pieces: string[]): Promise<string> => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    const fetch: Fetch = async () => new Response(body, { headers: { "content-type": type } });
    return countedFetch(systemClock, fetch)("http://server").then((response) => response.text());
  };
  const makeList = (count: number): string => `[${"{},".repeat(count)}0]`;
  expect(await readAnswer("application/json", makeList(50_000))).toHaveLength(150_003);
  expect(await getFailure(readAnswer("application/json", makeList(60_000), makeList(60_000)))).toContain(
    "more than 100000 values",
  );
  const events = `id: 1\r\ndata: {}\r\n\r\n: ping\n\ndata: [1,\ndata: 2]\n\ndata: last`;
  for (let cut = 0; cut <= events.length; cut += 1) {
    expect(await readAnswer("text/event-stream", events.slice(0, cut), events.slice(cut))).toBe(events);
  }
  const event = `data: ${makeList(60_000)}\n`;
  expect(await readAnswer("text/event-stream; charset=utf-8", event, "\n", event, "\n")).toHaveLength(
    2 * event.length + 2,
  );
  for (const newline of ["\n", "\r\n"]) {
    const longEvent = [`data: ${makeList(60_000)}`, newline, `data: ${makeList(60_000)}`, newline, newline];
    expect(await getFailure(readAnswer("text/event-stream", ...longEvent))).toContain("more than 100000 values");
  }
});

test("[MC-16] pauses after events that take long to parse, so that an endless stream does not block other work", async () => {
  const pauses: number[] = [];
  let time = 0;
  const slowClock: Clock = {
    now: systemClock.now,
    monotonic: () => (time += 10),
    every: systemClock.every,
    after: (ms, run) => {
      pauses.push(ms);
      return systemClock.after(0, run);
    },
  };
  const fetch: Fetch = async () =>
    new Response("data: {}\n\n".repeat(100), { headers: { "content-type": "text/event-stream" } });
  const response = await countedFetch(slowClock, fetch)("http://server");
  expect(await response.text()).toHaveLength(1_000);
  expect(pauses).toEqual([20]);
});

test("[MC-2] tool names start with the server's name and are valid for every provider; allow and deny lists select tools", () => {
  expect(toOfferedName("git", "list issues")).toBe("git__list_issues");
  const longName = toOfferedName("server", "x".repeat(100));
  expect(longName).toHaveLength(64);
  expect(longName).not.toBe(toOfferedName("server", `${"x".repeat(99)}y`));
  expect(isAllowed("a", [], [])).toBe(true);
  expect(isAllowed("a", ["b"], [])).toBe(false);
  expect(isAllowed("a", ["a"], ["a"])).toBe(false);
});

test("[MC-17] disconnects a server that floods a response with pings, before answering all of them", async () => {
  await using host = startMcpHost();
  const ping = `data: ${JSON.stringify({ jsonrpc: "2.0", id: "p", method: "ping" })}\n\n`;
  let answerCount = 0;
  const fetch: Fetch = (url, init) => {
    const body = typeof init?.body === "string" ? init.body : "";
    if (body.includes('"result"')) {
      answerCount += 1;
      return new Promise(() => {});
    }
    if (!body.includes("tools/call")) return localFetch(url, init);
    return Promise.resolve(new Response(ping.repeat(5_000), { headers: { "content-type": "text/event-stream" } }));
  };
  const target = { url: new URL("/mcp", host.url), kind: "http", headers: {}, fetch } as const;
  const connection = await openHttp(systemClock, target);
  expect(await getFailure(connection.call("echo", {}, neverAborted, LIMITS))).toBe(
    "it sent more than 64 requests at a time",
  );
  expect([answerCount, connection.isOpen]).toEqual([64, false]);
});

test("[CH-54] reads a large answer only once its memory is available", async () => {
  await using host = startMcpHost();
  for (const [kind, path] of [
    ["http", "/mcp"],
    ["sse", "/sse"],
  ] as const) {
    const outbound = new Outbound({ clock: systemClock, allowed: ["127.0.0.0/8"], max_bytes: 16 * 1024 * 1024 });
    const fetch: Fetch = (url, init) => outbound.open(new URL(url), init);
    const connection = await openHttp(systemClock, { url: new URL(path, host.url), kind, headers: {}, fetch });
    const share = new MemoryShare({ total: 1_024, each: 1_024 });
    const otherReservation = await share.take("others", 1_024, neverAborted);
    using memory = new AnswerMemory({ clock: systemClock, share, holder: "ann", signal: neverAborted });
    const answer = connection.call("long", { a: 3 }, neverAborted, LIMITS, memory);
    await until(() => share.waiting === 1);
    otherReservation.release();
    expect(String((await answer).result.output)).toStartWith("word word");
    expect(share.used).toBe(16 * 1024 * 1024);
    memory[Symbol.dispose]();
    await until(() => share.used === 0);
    await connection.close();
  }
});
