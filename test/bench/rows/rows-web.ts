// The page rows, in a real headless Chromium (web.mjs): latencies that a person notices. `--only web` runs all of them. The baseline is a
// minimal page of a minimal server in the same browser: if that is slow, the machine is slow, for example without graphics hardware.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openLocalStore } from "#db/engine/local.ts";
import { type SeededMany, seedMany } from "#test/support/seed-many.ts";
import { startFloorPage } from "../floor-page.ts";
import { startModel } from "../model.ts";
import { type Product, startProduct } from "../product.ts";
import { type Bench, type Figures, productFigure, productRatio, type Row, type Verdict } from "../row.ts";
import { seedChats } from "../seeds/seed-chats.ts";
import { browse } from "./browse.ts";
import { startReachableAgent } from "./rows-tunnel.ts";
import { firstRow } from "./rows-web-first.ts";

const WORKSPACES = 10_000;
const LINES = 10_000;
const KEYS = 150;
const TOKENS = 1_000;
/** Answers between two memory samples, tokens per answer, and tokens per second. BENCH_STREAM=720,500,200 simulates an hour. */
const [ANSWERS = 10, ANSWER_TOKENS = TOKENS, TOKENS_PER_S = 1_000] = (process.env.BENCH_STREAM ?? "")
  .split(",")
  .filter(Boolean)
  .map(Number);
/** More than all answers in total, so that none is summarized. */
const CONTEXT_LIMIT = 100_000_000;

let folderCount = 0;

const startWebProduct = (
  { setup }: Bench,
  dataDir = join(setup.dir, `web-${++folderCount}`),
  env: Record<string, string> = {},
): Promise<Product> => {
  if (!setup.productCommand) throw new Error("there is no product to measure");
  mkdirSync(dataDir, { recursive: true });
  // Not pinned: browser and server share the machine.
  return startProduct({ command: setup.productCommand, dataDir, core: undefined, env });
};

const atMost = (what: string, figure: string, bound: number, unit: Verdict["unit"]): Verdict => ({
  what,
  target: `<= ${bound}${unit === "count" ? "" : ` ${unit}`}`,
  bound,
  unit,
  value: productFigure(figure),
  better: "lower",
});

type WebRowParts = Pick<Row, "title" | "figures" | "verdicts"> & {
  readonly measure: (bench: Bench) => Promise<Figures>;
};

const row = (
  name: string,
  { measure, ...rowFields }: WebRowParts,
  sides: Row["sides"] = ["floor", "product"],
): Row => ({
  name: `web-${name}`,
  sides,
  maxRounds: 3,
  async measure(bench, side) {
    if (side === "product") return await measure(bench);
    using floor = startFloorPage();
    return await browse({ url: floor.url, adminToken: "" }, name, { floor: true });
  },
  ...rowFields,
});

/**
 * Compares a time with the time of the minimal page in the same browser. The bounds are the times that a person should not notice, divided
 * by those of the minimal page on the machine for which they were set (README.md).
 */
const atMostTimesFloor = (what: string, figure: string, bound: number): Verdict => ({
  what: `${what}, product / bare page`,
  target: `<= ${bound}`,
  bound,
  unit: "ratio",
  value: productRatio(figure),
  better: "lower",
});

/** Verdicts on frames while scrolling: their time compared with plain rows on the same machine, and the page's CPU time. */
const frameVerdicts = (bound: number): Verdict[] => [
  atMostTimesFloor("frame while scrolling, p95", "frame_p95", 1.1),
  atMost("page's processor for a frame", "frame_cpu", bound, "ms"),
];

const load = row("load", {
  title:
    "Home of an empty server, nothing cached: on loopback; then at a 4 times slower processor, 1.6 Mbit/s and 150 ms there and back",
  async measure(bench) {
    await using product = await startWebProduct(bench);
    return await browse(product, "load");
  },
  figures: {
    js_kb: "scripts KB",
    css_kb: "styles KB",
    fast_ms: "loopback ms",
    slow_ms: "slow ms",
    fast_cpu: "page's processor, loopback ms",
    slow_cpu: "page's processor, slow ms",
    again_ms: "loopback, files kept ms",
  },
  verdicts: [
    atMost("scripts of the first page", "js_kb", 45, "KB"),
    atMost("styles", "css_kb", 12, "KB"),
    atMostTimesFloor("content is there, loopback", "fast_ms", 2.65),
    atMost("content is there, slow", "slow_ms", 1_500, "ms"),
    atMost("content is there, loopback, with files that the browser kept", "again_ms", 300, "ms"),
  ],
});

/** Starts a product with 10,000 workspaces. The rows are written while the server is stopped. */
const startLarge = async (bench: Bench): Promise<{ product: Product; seeded: SeededMany }> => {
  const dataDir = join(bench.setup.dir, `web-${++folderCount}`);
  await (await startWebProduct(bench, dataDir))[Symbol.asyncDispose]();
  const fatal = (error: Error): void => {
    throw error;
  };
  const now = Date.now();
  const store = openLocalStore({ directory: dataDir, cacheMb: 64, now, fatal });
  const seeded = await seedMany(store, now, { workspaces: WORKSPACES });
  await store.close();
  return { product: await startWebProduct(bench, dataDir), seeded };
};

const list = row("list", {
  title: "The list of 10,000 workspaces",
  async measure(bench) {
    const { product } = await startLarge(bench);
    await using _ = product;
    return await browse(product, "list", { workspaces: WORKSPACES });
  },
  figures: {
    open_ms: "page opened to rows ms",
    whole_ms: "to all of them ms",
    again_ms: "from Home to rows ms",
    frame_p95: "frame while scrolling p95 ms",
    key_p95: "key in the filter to paint p95 ms",
    again_cpu: "page's processor, from Home ms",
    frame_cpu: "page's processor for each frame ms",
    key_cpu: "page's processor for each key ms",
  },
  verdicts: [
    atMost("the list from another page", "again_ms", 200, "ms"),
    atMostTimesFloor("a key in the filter to paint, p95", "key_p95", 1.85),
    ...frameVerdicts(20),
  ],
});

const chat = row("chat", {
  title: "A chat of 5,000 messages",
  async measure(bench) {
    const dataDir = join(bench.setup.dir, `web-${++folderCount}`);
    await (await startWebProduct(bench, dataDir))[Symbol.asyncDispose]();
    const { long_id } = await seedChats(dataDir, 3, 5_200);
    await using product = await startWebProduct(bench, dataDir);
    return await browse(product, "chat", { chat: long_id });
  },
  figures: {
    open_ms: "from the list ms",
    cold_ms: "page opened ms",
    nodes: "elements",
    frame_p95: "frame while scrolling p95 ms",
    nodes_after: "elements after it",
    open_cpu: "page's processor, from the list ms",
    frame_cpu: "page's processor for each frame ms",
  },
  verdicts: [
    atMostTimesFloor("opened from the list", "open_ms", 6.5),
    atMost("elements of the page", "nodes", 1_500, "count"),
    ...frameVerdicts(20),
  ],
});

const stream = row(
  "stream",
  {
    title: `An answer of ${TOKENS} tokens at 100 a second, then ${ANSWERS} of ${ANSWER_TOKENS} at ${TOKENS_PER_S} a second`,
    async measure(bench) {
      const dir = join(bench.setup.dir, `web-${++folderCount}`);
      mkdirSync(dir);
      await using model = await startModel(dir);
      // The model is called only for answers.
      await using product = await startWebProduct(bench, join(dir, "data"), { SLIPWAY_CHAT_TITLES: "false" });
      const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
        const headers = { "Service-Session-Token": product.adminToken, "content-type": "application/json" };
        const request = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
        const response = await fetch(`${product.url}/api/v2${path}`, request);
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
        return (await response.json()) as T;
      };
      await api("POST", "/chats/providers", { provider: "openai-compat", base_url: `${model.url}/v1` });
      await api("POST", "/chats/model-configs", {
        provider: "openai-compat",
        model: "source",
        context_limit: CONTEXT_LIMIT,
      });
      const [organization] = await api<{ id: string }[]>("GET", "/organizations");
      const content = [{ type: "text", text: "now" }];
      const { id } = await api<{ id: string }>("POST", "/chats", { organization_id: organization?.id, content });
      const actions = {
        speak: () => model.speak(1, TOKENS, 100),
        hurry: () => model.speak(1, ANSWER_TOKENS, TOKENS_PER_S),
      };
      return await browse(product, "stream", { chat: id, rounds: ANSWERS }, actions);
    },
    figures: {
      token_p50: "token to paint p50 ms",
      token_p95: "token to paint p95 ms",
      tokens: "tokens seen",
      heap_mb: "memory of the page's scripts MB",
      half_mb: "grown by the first half of the answers MB",
      grown_mb: `grown by all ${ANSWERS} MB`,
    },
    verdicts: [
      atMost("token of the model to paint, p95", "token_p95", 33, "ms"),
      atMost(`memory for ${ANSWERS * ANSWER_TOKENS} more tokens`, "grown_mb", 4, "MB"),
    ],
  },
  ["product"],
);

const terminal = row("terminal", {
  title: `${KEYS} keys in a terminal`,
  async measure(bench) {
    await using reach = await startReachableAgent(bench);
    const agent = reach.path.split("/").at(-1);
    return await browse(reach.product, "terminal", { agent, keys: KEYS });
  },
  figures: { echo_p50: "key to paint p50 ms", echo_p95: "key to paint p95 ms", keys: "keys seen" },
  verdicts: [atMostTimesFloor("key to its echo on the screen, p95", "echo_p95", 1.25)],
});

const log = row("log", {
  title: "The log of an agent with 10,000 lines",
  async measure(bench) {
    await using reach = await startReachableAgent(bench);
    await reach.addLines(LINES);
    return await browse(reach.product, "log", { workspace: reach.workspaceId });
  },
  figures: {
    open_ms: "opened from the overview ms",
    cold_ms: "page opened ms",
    frame_p95: "frame while scrolling p95 ms",
    nodes: "elements",
    open_cpu: "page's processor, opened ms",
    frame_cpu: "page's processor for each frame ms",
  },
  verdicts: [atMost("the log opened", "open_ms", 100, "ms"), ...frameVerdicts(16.7)],
});

export const web: readonly Row[] = [firstRow, load, list, chat, stream, terminal, log];
