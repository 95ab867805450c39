// The AI gateway row: how much longer a call through the gateway takes than the same call made directly. The model is model-source.ts; the
// baseline is the benchmark's process, which calls the model directly.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { createGatewayToken, putGatewaySettings } from "#test/support/models/gateway-world.ts";
import { processorMs, residentMiB } from "../machine.ts";
import { type Model, startModel } from "../model.ts";
import { startProduct } from "../product.ts";
import { type Bench, type Figures, type Medians, productFigure, type Row, range } from "../row.ts";
import type { SideName } from "../sides.ts";

/** Bun opens at most 256 connections to other servers, unless a variable at startup raises the limit. */
const ENV = { BUN_CONFIG_MAX_HTTP_REQUESTS: "4096" };

const CALLS = 500;
/** The first calls of a new process run cold code. */
const WARM_CALLS = 100;
const STREAMS = 20;
const CHUNKS_PER_S = 50;
const WARM_CHUNKS = CHUNKS_PER_S;
const CROWD = 1_000;
/** One person can have at most 100 open calls. */
const MAX_CALLS_PER_USER = 100;
const CROWD_CHUNKS = 40;
const CROWD_PER_S = 2;
/** Chunks until all streams are open and their buffers have reached their final size. */
const CROWD_WARM_CHUNKS = 10;

/** Where calls go. `tokens` belong to different people. */
type GatewayRoute = { readonly url: string; readonly tokens: readonly string[]; readonly pid: number | undefined };

const openRoute = async (
  bench: Bench,
  side: SideName,
  model: Model,
  dir: string,
): Promise<GatewayRoute & AsyncDisposable> => {
  if (side === "floor") {
    const direct = { url: `${model.url}/v1`, tokens: [""], pid: undefined };
    return { ...direct, async [Symbol.asyncDispose]() {} };
  }
  const { core, productCommand: command } = bench.setup;
  if (!command) throw new Error("there is no product to measure");
  await using stack = new AsyncDisposableStack();
  const product = stack.use(await startProduct({ command, dataDir: join(dir, "data"), core, env: ENV }));
  const admin = new Client(product.url, product.adminToken);
  await admin.post("/api/v2/chats/providers", { provider: "openai-compat", base_url: `${model.url}/v1` });
  await admin.post("/api/v2/chats/model-configs", { provider: "openai-compat", model: "source" });
  await putGatewaySettings(admin);
  const tokens = await Promise.all(
    range(CROWD / MAX_CALLS_PER_USER).map((index) => createToken(admin, product.url, index)),
  );
  const started = stack.move();
  const url = `${product.url}/api/v2/ai/openai/v1`;
  return { url, tokens, pid: product.pid, [Symbol.asyncDispose]: () => started.disposeAsync() };
};

const createToken = async (admin: Client, url: string, index: number): Promise<string> => {
  const [organization] = await admin.get<{ id: string }[]>("/api/v2/organizations");
  const password = "Bench-only-5b1f0c";
  const user = { email: `caller-${index}@example.com`, username: `caller-${index}`, password };
  await admin.post("/api/v2/users", { ...user, organization_ids: organization ? [organization.id] : [] });
  return createGatewayToken(await new Client(url).signIn(user.email, password));
};

const startCall = async (
  { url, tokens }: GatewayRoute,
  message: string,
  index = 0,
): Promise<AsyncIterable<Uint8Array>> => {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokens[index % tokens.length]}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "source", stream: true, messages: [{ role: "user", content: message }] }),
  });
  if (!response.ok || !response.body) throw new Error(`the model answered ${response.status} ${await response.text()}`);
  return response.body as unknown as AsyncIterable<Uint8Array>;
};

/** Measures the milliseconds to the first byte of calls, one after the other. */
const measureFirstBytes = async (route: GatewayRoute): Promise<number[]> => {
  const times: number[] = [];
  for (const call of range(CALLS + WARM_CALLS)) {
    const startedAt = performance.now();
    let firstByteMs: number | undefined;
    for await (const _ of await startCall(route, "now")) firstByteMs ??= performance.now() - startedAt;
    if (call >= WARM_CALLS) times.push(firstByteMs ?? Number.NaN);
  }
  return times;
};

const nowMs = (): number => performance.timeOrigin + performance.now();

/** Measures the milliseconds from the model's chunk to its reader, and the server's CPU time per chunk. */
const measureChunks = async (
  bench: Bench,
  route: GatewayRoute,
  model: Model,
): Promise<{ times: number[]; processor_ms: number }> => {
  const times: number[] = [];
  const chunkCount = WARM_CHUNKS + CHUNKS_PER_S * bench.seconds;
  let [receivedCount, cpuBefore] = [0, 0];
  const read = async (index: number): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const bytes of await startCall(route, "later", index)) {
      const receivedAt = nowMs();
      for (const [, sentAt] of decoder.decode(bytes, { stream: true }).matchAll(/<(\d+\.\d+)>/g)) {
        if (++receivedCount === WARM_CHUNKS * STREAMS && route.pid) cpuBefore = processorMs(route.pid);
        if (receivedCount > WARM_CHUNKS * STREAMS) times.push(receivedAt - Number(sentAt));
      }
    }
  };
  const reading = Promise.all(range(STREAMS).map(read));
  await model.speak(STREAMS, chunkCount, CHUNKS_PER_S);
  await reading;
  return { times, processor_ms: route.pid ? (processorMs(route.pid) - cpuBefore) / times.length : 0 };
};

/** Measures the growth of the server's memory during a thousand streams. */
const measureCrowdGrowth = async (route: GatewayRoute, model: Model, pid: number): Promise<number> => {
  let receivedCount = 0;
  let settledMiB = Number.NaN;
  const onChunk = (): void => {
    if (++receivedCount === CROWD * CROWD_WARM_CHUNKS) settledMiB = residentMiB(pid);
  };
  const reading = Promise.all(range(CROWD).map((index) => readPlain(route, index, onChunk)));
  let peakMiB = 0;
  const sampling = setInterval(() => {
    if (!Number.isNaN(settledMiB)) peakMiB = Math.max(peakMiB, residentMiB(pid));
  }, 100);
  await model.speak(CROWD, CROWD_CHUNKS, CROWD_PER_S);
  await reading.finally(() => clearInterval(sampling));
  return peakMiB - settledMiB;
};

const LAST_CHUNK = "0\r\n\r\n";

/** Reads one stream over a separate socket, because fetch in this process is limited to 256. Calls `onChunk` for each piece. */
const readPlain = ({ url, tokens }: GatewayRoute, index: number, onChunk: () => void): Promise<void> => {
  const { hostname, port, pathname } = new URL(`${url}/chat/completions`);
  const body = JSON.stringify({ model: "source", stream: true, messages: [{ role: "user", content: "later" }] });
  const head = `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${tokens[index % tokens.length]}\r\n`;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const rejectEarlyEnd = (): void => reject(new Error("a stream of the gateway has ended early"));
  const data = (socket: { end(): unknown }, piece: Uint8Array): void => {
    const text = new TextDecoder().decode(piece);
    if (text.startsWith("HTTP/") && !text.startsWith("HTTP/1.1 200")) reject(new Error(text));
    if (text.includes("data: ")) onChunk();
    if (!text.endsWith(LAST_CHUNK)) return;
    resolve();
    socket.end();
  };
  const open = (socket: { write(text: string): unknown }): void => {
    socket.write(`${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  Bun.connect({
    hostname,
    port: Number(port),
    socket: { open, data, close: rejectEarlyEnd, error: rejectEarlyEnd },
  }).catch(reject);
  return promise;
};

const median = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? Number.NaN;

/** Returns the product's additional time over the baseline. */
const addedOverBaseline =
  (figure: string) =>
  ({ floor, product }: Medians): number | undefined => {
    const [direct, throughGateway] = [floor?.[figure], product?.[figure]];
    return direct === undefined || throughGateway === undefined ? undefined : throughGateway - direct;
  };

export const gateway: Row = {
  name: "gateway",
  title:
    "Calls of a model through the gateway, in turn, 20 streams and 1,000 streams; floor: the same calls made directly",
  sides: ["floor", "product"],
  maxRounds: 3,
  async measure(bench, side): Promise<Figures> {
    const dir = mkdtempSync(join(bench.setup.dir, "gateway-"));
    await using model = await startModel(dir);
    await using route = await openRoute(bench, side, model, dir);
    const first_p50 = median(await measureFirstBytes(route));
    const { times, processor_ms } = await measureChunks(bench, route, model);
    const figures = { first_p50, chunk_p50: median(times) };
    if (route.pid === undefined) return figures;
    return { ...figures, processor_ms, growth_mib: await measureCrowdGrowth(route, model, route.pid) };
  },
  figures: {
    first_p50: "first byte p50 ms",
    chunk_p50: "chunk p50 ms",
    processor_ms: "server's processor ms per chunk",
    growth_mib: "server's memory growth with 1,000 streams MiB",
  },
  verdicts: [
    {
      what: "first byte, beyond the direct call, p50",
      target: "< 3 ms",
      value: addedOverBaseline("first_p50"),
      bound: 3,
      better: "lower",
      unit: "ms",
    },
    {
      what: "a chunk, beyond the direct call, p50",
      target: "< 1 ms",
      value: addedOverBaseline("chunk_p50"),
      bound: 1,
      better: "lower",
      unit: "ms",
    },
    {
      what: "server's processor for a chunk",
      target: "<= 0.2 ms",
      value: productFigure("processor_ms"),
      bound: 0.2,
      better: "lower",
      unit: "ms",
    },
    {
      what: "growth of the server's memory while 1,000 streams speak",
      target: "<= 32 MB",
      value: productFigure("growth_mib"),
      bound: 32,
      better: "lower",
      unit: "MB",
    },
  ],
};
