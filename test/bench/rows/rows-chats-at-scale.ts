// The row about many stored chats: the list, a search, a page of a long history, and a start with a large database.
import { join } from "node:path";
import { waitUntilIdle } from "../machine.ts";
import { type Product, startProduct } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row, range } from "../row.ts";
import { seedChats } from "../seeds/seed-chats.ts";

/** For example, BENCH_CHATS=5000,200000 makes the database smaller. */
const [CHATS = 50_000, MESSAGES = 2_000_000] = (process.env.BENCH_CHATS ?? "")
  .split(",")
  .flatMap((text) => Number(text) || []);
const REQUESTS = 300;
let folderCount = 0;

export const chatsAtScale: Row = {
  name: "chats-at-scale",
  title: `${CHATS} stored chats of one owner, ${MESSAGES} messages: one request after the other`,
  sides: ["product"],
  maxRounds: 1,
  async measure(bench) {
    const dataDir = join(bench.setup.dir, `chats-${++folderCount}`);
    // The first start creates the database.
    await (await startTimed(bench, dataDir)).product[Symbol.asyncDispose]();
    const smallStart = await measureStart(bench, dataDir);
    const seeded = await seedChats(dataDir, CHATS, MESSAGES);
    const fullStart = await measureStart(bench, dataDir);
    await using product = (await startTimed(bench, dataDir)).product;
    await waitUntilIdle(product.pid);
    const q = encodeURIComponent(`search:${seeded.word}`);
    const figures: Figures = { seed_s: seeded.seconds, start_small_ms: smallStart, start_ms: fullStart };
    for (const [name, path] of Object.entries({
      list: "/api/v2/chats",
      search: `/api/v2/chats?q=${q}`,
      common: "/api/v2/chats?q=search:w0",
      rare: `/api/v2/chats?q=${encodeURIComponent('search:"w0 w1 w2"')}`,
      open: `/api/v2/chats/${seeded.long_id}/messages?after_id=${seeded.middle}`,
    })) {
      const times = await measureTimes(product, path);
      figures[`${name}_p50`] = quantile(times, 0.5);
      figures[`${name}_p99`] = quantile(times, 0.99);
    }
    return figures;
  },
  figures: {
    seed_s: "seeding s",
    start_small_ms: "start, empty, ms",
    start_ms: "start, full, ms",
    list_p50: "list p50 ms",
    list_p99: "list p99 ms",
    search_p50: "search p50 ms",
    search_p99: "search p99 ms",
    common_p50: "search, common word, p50 ms",
    common_p99: "search, common word, p99 ms",
    rare_p50: "search, phrase, p50 ms",
    rare_p99: "search, phrase, p99 ms",
    open_p50: "open p50 ms",
    open_p99: "open p99 ms",
  },
  verdicts: [
    ...(
      [
        ["list_p99", "list, first page, p99", 20],
        ["search_p99", "search of a mid-frequency word, p99", 30],
        ["open_p99", "5,000-message chat with after_id, p99", 30],
      ] as const
    ).map(([figure, what, bound]) => ({
      what,
      target: `<= ${bound} ms`,
      value: productFigure(figure),
      bound,
      better: "lower" as const,
      unit: "ms" as const,
    })),
    {
      what: "start with that data",
      target: "<= 1.2 x, or 50 ms more than, with none",
      value: productFigure("start_ms"),
      bound: ({ product }) => Math.max(1.2 * (product?.start_small_ms ?? 0), (product?.start_small_ms ?? 0) + 50),
      better: "lower",
      unit: "ms",
    },
  ],
};

const startTimed = async ({ setup }: Bench, dataDir: string): Promise<{ product: Product; ms: number }> => {
  const startedAt = performance.now();
  const product = await startProduct({ command: setup.productCommand ?? [], dataDir, core: setup.core });
  return { product, ms: performance.now() - startedAt };
};

/** Returns the median of five starts in ms. */
const measureStart = async (bench: Bench, dataDir: string): Promise<number> => {
  const times: number[] = [];
  for (const _ of range(5)) {
    const { product, ms } = await startTimed(bench, dataDir);
    await product[Symbol.asyncDispose]();
    times.push(ms);
  }
  return quantile(
    times.sort((a, b) => a - b),
    0.5,
  );
};

const measureTimes = async (product: Product, path: string): Promise<number[]> => {
  const times: number[] = [];
  const headers = { "Service-Session-Token": product.adminToken };
  for (let index = 0; index < REQUESTS; index++) {
    const startedAt = performance.now();
    const response = await fetch(`http://127.0.0.1:${product.port}${path}`, { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    times.push(performance.now() - startedAt);
  }
  return times.sort((a, b) => a - b);
};

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
