// The chat rows: the frames that followers receive while models stream, their delay after the model, and the delay until a message appears.
// The model is model-source.ts; the baseline is relay.ts, both on sockets.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "../machine.ts";
import { type Model, startModel } from "../model.ts";
import { startServer } from "../process.ts";
import { startProduct } from "../product.ts";
import { type Bench, type Figures, productRatio, type Row, range } from "../row.ts";
import type { SideName } from "../sides.ts";

/** Bun opens at most 256 connections to other servers, unless a variable at startup raises the limit. */
const ENV = { BUN_CONFIG_MAX_HTTP_REQUESTS: "4096", SLIPWAY_CHAT_SLOTS: "2000" };

/** Where chats are: `open` creates chat n and returns the path to which its followers connect. */
type ChatTarget = {
  open(chat: number): Promise<{ path: string }>;
  readonly url: string;
  readonly headers: Record<string, string>;
};

const startSide = async (
  bench: Bench,
  side: SideName,
  model: Model,
  dir: string,
): Promise<ChatTarget & AsyncDisposable> => {
  const { core, productCommand } = bench.setup;
  if (side === "floor") {
    const port = await findFreePort();
    const command = [process.execPath, join(import.meta.dir, "..", "relay.ts"), String(port), model.url];
    const relay = await startServer({ command, env: ENV, port, readyPath: "/", core, logFile: join(dir, "relay.log") });
    return {
      ...relay,
      headers: {},
      async open(chat) {
        await fetch(`${relay.url}/chats/${chat}`, { method: "POST" });
        return { path: `/chats/${chat}` };
      },
    };
  }
  if (!productCommand) throw new Error("there is no product to measure");
  await using stack = new AsyncDisposableStack();
  const product = stack.use(
    await startProduct({ command: productCommand, dataDir: join(dir, "data"), core, env: ENV }),
  );
  const headers = { "Service-Session-Token": product.adminToken };
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${product.url}/api/v2${path}`, {
      method,
      headers: { ...headers, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  await api("POST", "/chats/providers", { provider: "openai-compat", base_url: `${model.url}/v1` });
  await api("POST", "/chats/model-configs", { provider: "openai-compat", model: "source" });
  const [organization] = await api<{ id: string }[]>("GET", "/organizations");
  const toContent = (content: string) => ({ content: [{ type: "text", text: content }] });
  const started = stack.move();
  return {
    url: product.url,
    headers,
    async open(chat) {
      const body = { organization_id: organization?.id, ...toContent(chat < 0 ? "now" : `chat ${chat}`) };
      const { id } = await api<{ id: string }>("POST", "/chats", body);
      return { path: `/api/v2/chats/${id}/stream` };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
};

const follow = async (
  { url, headers }: ChatTarget,
  path: string,
  onText: (text: string) => void,
): Promise<WebSocket> => {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}${path}`, { headers } as never);
  socket.onmessage = ({ data }) => onText(String(data));
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  return socket;
};

const FOLLOWERS = 2;

/** Streams in `chats` chats with two followers each. Passes each frame to `onText`. Resolves when all followers have received the end. */
const stream = async (
  bench: Bench,
  side: SideName,
  request: { chats: number; chunks: number; per_s: number },
  onText: (text: string) => void,
): Promise<{ ms: number }> => {
  const dir = mkdtempSync(join(bench.setup.dir, "chats-"));
  await using model = await startModel(dir);
  await using target = await startSide(bench, side, model, dir);
  const { promise: done, resolve } = Promise.withResolvers<void>();
  let endedCount = 0;
  for (const group of range(Math.ceil(request.chats / 20))) {
    const chats = range(Math.min(20, request.chats - group * 20)).map((index) => group * 20 + index);
    await Promise.all(
      chats.map(async (chat) => {
        const { path } = await target.open(chat);
        for (const _ of range(FOLLOWERS)) {
          let isOver = false;
          await follow(target, path, (text) => {
            onText(text);
            if (isOver || !text.includes("the end")) return;
            isOver = true;
            endedCount += 1;
            if (endedCount === request.chats * FOLLOWERS) resolve();
          });
        }
      }),
    );
  }
  const startedAt = performance.now();
  await model.speak(request.chats, request.chunks, request.per_s);
  await done;
  return { ms: performance.now() - startedAt };
};

const percentiles = (times: number[]): { p50: number; p99: number } => {
  times.sort((a, b) => a - b);
  const getPercentile = (share: number): number => times[Math.floor(times.length * share)] ?? 0;
  return { p50: getPercentile(0.5), p99: getPercentile(0.99) };
};

const CHATS = 500;
const CHUNKS = 200;

export const tokens: Row = {
  name: "tokens",
  title:
    "500 chats streaming 200 chunks each concurrently, 2 followers each; floor: a relay that forwards the model's bytes",
  sides: ["floor", "product"],
  async measure(bench, side): Promise<Figures> {
    const { ms } = await stream(bench, side, { chats: CHATS, chunks: CHUNKS, per_s: 0 }, () => {});
    return { tokens_per_s: (CHATS * CHUNKS * FOLLOWERS) / (ms / 1000) };
  },
  figures: { tokens_per_s: "chunks delivered/s" },
  verdicts: [
    {
      what: "chunks delivered/s, product / relay",
      target: ">= 0.75",
      value: productRatio("tokens_per_s"),
      bound: 0.75,
      better: "higher",
      unit: "ratio",
    },
  ],
};

const WARM_UP_MS = 1000;

const nowMs = (): number => performance.timeOrigin + performance.now();

export const latency: Row = {
  name: "latency",
  title:
    "100 chats x 50 chunks/s, after a second of it: from the model's chunk to the follower's frame; floor: the relay",
  sides: ["floor", "product"],
  async measure(bench, side): Promise<Figures> {
    const times: number[] = [];
    let firstSentAt = Number.MAX_SAFE_INTEGER;
    const onText = (text: string): void => {
      if (text.includes('"type":"message"')) return;
      const receivedAt = nowMs();
      for (const [, sentAt] of text.matchAll(/<(\d+\.\d+)>/g)) {
        firstSentAt = Math.min(firstSentAt, Number(sentAt));
        // A new process runs cold code at first: 57 ms for 100 concurrent chats, and later 1 to 2 ms.
        if (Number(sentAt) - firstSentAt > WARM_UP_MS) times.push(receivedAt - Number(sentAt));
      }
    };
    await stream(bench, side, { chats: 100, chunks: 50 * (bench.seconds + WARM_UP_MS / 1000), per_s: 50 }, onText);
    return percentiles(times);
  },
  figures: { p50: "chunk to frame p50 ms", p99: "chunk to frame p99 ms" },
  verdicts: [
    {
      what: "chunk to frame p99",
      target: "< 5 ms",
      value: ({ product }) => product?.p99,
      bound: 5,
      better: "lower",
      unit: "ms",
    },
    {
      what: "chunk to frame p99, product / relay",
      target: "<= 2",
      value: productRatio("p99"),
      bound: 2,
      better: "lower",
      unit: "ratio",
    },
  ],
};

const SENDS = 500;
const LABEL_MS = 25;

/** Measures committed requests one after the other in milliseconds; for the product, until the follower receives the new status. */
const measureSends = async (bench: Bench, side: SideName): Promise<number[]> => {
  const times: number[] = [];
  if (side === "floor") {
    await using target = await bench.start("floor", { agents: 1 });
    const plan = target.patch(0);
    if (plan.kind !== "patch") throw new Error("the floor takes no lines");
    const { path, token, source } = plan;
    const body = JSON.stringify({
      log_source_id: source,
      logs: [{ created_at: new Date().toISOString(), output: "one", level: "info" }],
    });
    const headers = { "Service-Session-Token": token, "content-type": "application/json" };
    for (const _ of range(SENDS)) {
      const startedAt = performance.now();
      const response = await fetch(`http://127.0.0.1:${target.port}${path}`, { method: "PATCH", headers, body });
      if (!response.ok) throw new Error(`PATCH: ${response.status} ${await response.text()}`);
      await response.arrayBuffer();
      times.push(performance.now() - startedAt);
    }
    return times.slice(SENDS / 10);
  }
  const dir = mkdtempSync(join(bench.setup.dir, "send-"));
  await using model = await startModel(dir);
  await using target = await startSide(bench, side, model, dir);
  const { path } = await target.open(-1);
  let [isRunning, isWaiting] = [() => {}, () => {}];
  const awaitIdle = () => new Promise<void>((resolve) => (isWaiting = resolve));
  const firstIdle = awaitIdle();
  await follow(target, path, (text) => {
    if (text.includes('"status":"running"')) isRunning();
    if (text.includes('"status":"waiting"')) isWaiting();
  });
  await Promise.race([firstIdle, Bun.sleep(2_000)]);
  const headers = { ...target.headers, "content-type": "application/json" };
  const body = JSON.stringify({ content: [{ type: "text", text: "now" }] });
  const url = `${target.url}${path.replace(/stream$/, "messages")}`;
  for (const _ of range(SENDS)) {
    const [running, waiting] = [new Promise<void>((resolve) => (isRunning = resolve)), awaitIdle()];
    const startedAt = performance.now();
    const sent = fetch(url, { method: "POST", headers, body });
    await running;
    times.push(performance.now() - startedAt);
    await (await sent).arrayBuffer();
    await waiting;
    // People do not send a message while the previous turn gets its label.
    await Bun.sleep(LABEL_MS);
  }
  return times.slice(SENDS / 10);
};

export const send: Row = {
  name: "send",
  title: "A message sent to the first status frame at its follower; floor: one group commit, asked for and answered",
  sides: ["floor", "product"],
  measure: async (bench, side) => percentiles(await measureSends(bench, side)),
  figures: { p50: "p50 ms", p99: "p99 ms" },
  verdicts: [
    {
      what: "send to first status, p50, product / one group commit",
      target: "<= 1.5",
      value: productRatio("p50"),
      bound: 1.5,
      better: "lower",
      unit: "ratio",
    },
    {
      what: "send to first status, p99, product / one group commit",
      target: "<= 1.5",
      value: productRatio("p99"),
      bound: 1.5,
      better: "lower",
      unit: "ratio",
    },
  ],
};
