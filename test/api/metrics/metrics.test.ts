// Prometheus metrics of a server in a separate process, strictly parsed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Buckets } from "#base/buckets.ts";
import { Client } from "#src/client.ts";
import { command } from "#test/crash/server.ts";
import { createGatewayToken, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { ModelServer } from "#test/support/models/model-server.ts";
import { addModel } from "#test/support/models/model-world.ts";
import { ADMIN, tempDirectory } from "#test/support/server.ts";
import { until } from "#test/support/until.ts";
import { type Family, parseMetrics } from "./parse.ts";

let directory: ReturnType<typeof tempDirectory>;
let child: Bun.Subprocess<"ignore", "pipe", "ignore">;
let url: URL;
let metricsUrl: URL;
let admin: Client;

beforeAll(async () => {
  directory = tempDirectory();
  child = Bun.spawn([...command(), "serve", "--metrics-address", "127.0.0.1:0"], {
    env: {
      PATH: Bun.env.PATH ?? "",
      HOME: directory.path,
      SLIPWAY_DATA_DIR: directory.path,
      SLIPWAY_ADDRESS: "127.0.0.1:0",
      SLIPWAY_ADMIN_EMAIL: ADMIN.email,
      SLIPWAY_ADMIN_USERNAME: ADMIN.username,
      SLIPWAY_ADMIN_PASSWORD: ADMIN.password,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  });
  let output = "";
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream() as never)) {
    output += piece;
    if (output.includes("Data directory:")) break;
  }
  url = new URL(/ is listening on (\S+)/.exec(output)?.[1] ?? "");
  metricsUrl = new URL(/^Metrics: (\S+)$/m.exec(output)?.[1] ?? "");
  admin = await new Client(url).signIn(ADMIN.email, ADMIN.password);
});

afterAll(async () => {
  child.kill("SIGTERM");
  await child.exited;
  directory[Symbol.dispose]();
});

const scrape = async (): Promise<Map<string, Family>> => {
  const response = await fetch(metricsUrl);
  expect(response.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
  return parseMetrics(await response.text());
};

/** Returns the value of a metric with exactly these labels. */
const findValue = (
  families: Map<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined =>
  [...families.values()]
    .flatMap(({ samples }) => samples)
    .find((sample) => sample.name === name && Bun.deepEquals(sample.labels, labels))?.value;

const countRequests = (families: Map<string, Family>, route: string, status: number): number =>
  findValue(families, "slipway_http_requests_total", { method: "GET", route, status: `${status}` }) ?? 0;

test("[OP-6] serves Prometheus metrics only at /metrics of the metrics address", async () => {
  const families = await scrape();
  expect([...families.keys()].filter((name) => name.startsWith("slipway_")).length).toBeGreaterThan(20);
  for (const name of ["slipway_event_loop_delay_seconds", "process_resident_memory_bytes"])
    expect(families.has(name)).toBe(true);
  expect((await fetch(new URL("/", metricsUrl))).status).toBe(404);
  expect((await fetch(metricsUrl, { method: "POST" })).status).toBe(405);
  expect((await fetch(new URL("/metrics", url))).headers.get("content-type")).not.toContain("version=0.0.4");
});

test("[OP-7] counts requests by route template, and never uses caller-supplied values as labels", async () => {
  const before = await scrape();
  const ids = Array.from({ length: 20 }, () => crypto.randomUUID());
  for (const id of ids) await admin.fetch("GET", `/api/v2/workspaces/${id}`);
  for (const id of ids) await admin.fetch("GET", `/made-up/${id}`);
  const after = await scrape();
  const route = "/api/v2/workspaces/:workspace";
  expect(countRequests(after, route, 404) - countRequests(before, route, 404)).toBe(20);
  expect(countRequests(after, "none", 404) - countRequests(before, "none", 404)).toBe(20);
  const text = await (await fetch(metricsUrl)).text();
  for (const id of ids) expect(text).not.toContain(id);
});

test("[OP-7] counts commits, mailboxes, sockets, model calls and tokens", async () => {
  const before = await scrape();
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/users/me/organizations");
  using socket = await admin.socket("/api/v2/chats/watch");
  expect(socket).toBeDefined();
  const content = [{ type: "text", text: "Hello" }];
  await admin.post<unknown>("/api/v2/chats", { organization_id: organization?.id, content });
  let after = before;
  const getIncrease = (name: string, labels = {}): number =>
    (findValue(after, name, labels) ?? 0) - (findValue(before, name, labels) ?? 0);
  await until(async () => {
    after = await scrape();
    return (
      getIncrease("slipway_model_tokens_total", { direction: "out" }) > 0 &&
      findValue(after, "slipway_chat_turns") === 0
    );
  });
  expect(getIncrease("slipway_model_calls_total")).toBeGreaterThan(0);
  expect(getIncrease("slipway_chat_turns_total")).toBe(1);
  expect(findValue(after, "slipway_chat_turns_waiting")).toBe(0);
  expect(getIncrease("slipway_commit_groups_total")).toBeGreaterThan(0);
  expect(getIncrease("slipway_commit_seconds_count")).toBeGreaterThan(0);
  expect(getIncrease("slipway_mailbox_wait_seconds_count")).toBeGreaterThan(0);
  expect(findValue(after, "slipway_mailbox_waiting")).toBe(0);
  expect(findValue(after, "slipway_actors_live", { kind: "chat" })).toBe(1);
  expect(findValue(after, "slipway_sockets_open")).toBe(1);
  expect(findValue(after, "slipway_database_bytes")).toBeGreaterThan(0);
});

test("[OP-7] buckets are cumulative and include their upper bound", () => {
  const buckets = new Buckets([1, 10]);
  for (const value of [0.5, 1, 5, 100]) buckets.observe(value);
  const values = buckets.values("x").map(({ metricName, labels, value }) => [metricName, labels.le, value]);
  expect(values).toEqual([
    ["x_bucket", 1, 2],
    ["x_bucket", 10, 3],
    ["x_bucket", "+Inf", 4],
    ["x_sum", undefined, 106.5],
    ["x_count", undefined, 4],
  ]);
});

test("[OP-6] the parser of these tests rejects invalid formats", () => {
  const head = "# HELP a_total Help.\n# TYPE a_total counter\n";
  expect(parseMetrics(`${head}a_total{b="c\\"d"} 1\n`).get("a_total")?.samples[0]?.labels).toEqual({ b: 'c"d' });
  for (const invalid of [
    "a_total 1\n",
    `${head}a_total 1`,
    `${head}a_total one\n`,
    `${head}a_total{b=c} 1\n`,
    `${head}a_total 1\na_total 2\n`,
    `${head}a_total -1\n`,
    `${head}${head}a_total 1\n`,
    '# TYPE a histogram\na_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n',
    '# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n',
  ]) {
    expect(() => parseMetrics(invalid)).toThrow();
  }
});

test("[OP-6] accepts IP addresses and the server's own names as the Host header, and rejects others with 421", async () => {
  const getStatus = async (host: string): Promise<number> => (await fetch(metricsUrl, { headers: { host } })).status;
  expect(await getStatus("evil.example")).toBe(421);
  expect(await getStatus("localhost.evil.example:9100")).toBe(421);
  for (const host of [metricsUrl.host, "localhost", "10.1.2.3:9100", "[::1]:9100"])
    expect(await getStatus(host)).toBe(200);
});

test("[GW-12] counts calls through the gateway by dialect, model and outcome, without caller-supplied names", async () => {
  await using upstream = await ModelServer.start();
  const { provider } = await addModel({ owner: admin, upstream }, "anthropic");
  await putGatewaySettings(admin, { names: [{ name: "any-*", targets: [{ provider_id: provider.id }] }] });
  const token = await createGatewayToken(admin);
  void upstream.answerAll((call) => call.answer(200, { usage: { input_tokens: 1, output_tokens: 1 } }));
  const callModel = async (model: string): Promise<number> => {
    const body = JSON.stringify({ model, max_tokens: 1, messages: [{ role: "user", content: "hello" }] });
    const headers = { "x-api-key": token };
    const response = await fetch(new URL("/api/v2/ai/anthropic/v1/messages", url), { method: "POST", headers, body });
    await response.text();
    return response.status;
  };
  expect([await callModel("test-model"), await callModel("any-secret-name"), await callModel("unknown")]).toEqual([
    200, 200, 404,
  ]);
  const families = await scrape();
  const countCalls = (model: string) =>
    findValue(families, "slipway_gateway_calls_total", { dialect: "anthropic", model, outcome: "ok" });
  expect([countCalls("test-model"), countCalls("other")]).toEqual([1, 1]);
  const refusalLabels = { dialect: "anthropic", reason: "model_not_found" };
  expect(findValue(families, "slipway_gateway_refusals_total", refusalLabels)).toBe(1);
  for (const name of ["slipway_gateway_first_byte_seconds", "slipway_gateway_call_seconds"]) {
    expect(findValue(families, `${name}_count`, { dialect: "anthropic" })).toBe(2);
    expect(findValue(families, `${name}_bucket`, { dialect: "anthropic", le: "+Inf" })).toBe(2);
  }
  expect(findValue(families, "slipway_gateway_calls_open")).toBe(0);
  expect(await (await fetch(metricsUrl)).text()).not.toContain("secret-name");
});
