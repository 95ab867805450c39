// The row that compares chats with opencode, another server for coding agents: the same scripted model, the same prompts, one follower. The
// "floor" of this row is opencode (`opencode serve` of the npm package that `.ci/agents` installs), not a lower bound.
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { findFreePort, processorMsOfTree, residentMiBOfTree } from "../machine.ts";
import { type Model, startModel } from "../model.ts";
import { startServer } from "../process.ts";
import { startProduct } from "../product.ts";
import { type Bench, type Figures, productRatio, type Row, range } from "../row.ts";
import type { SideName } from "../sides.ts";

const CHATS = [1, 10, 100] as const;
const CHUNKS = 100;
const CHUNKS_PER_S = 20;
/** This prompt makes the model answer with so many chunks, at this rate. */
const PROMPT = `say ${CHUNKS} ${CHUNKS_PER_S}`;
const TURN_TIMEOUT_MS = 120_000;

/**
 * A server with chats. `prompt` resolves when the server has accepted the text. `onText` receives each text of a chat with the chat's
 * number.
 */
type ChatServer = {
  readonly pid: number;
  open(count: number, onText: (chat: number, text: string) => void): Promise<void>;
  prompt(chat: number, text: string): Promise<void>;
};

const post = async (url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`);
  return response;
};

const startSlipway = async ({ setup }: Bench, model: Model, dir: string): Promise<ChatServer & AsyncDisposable> => {
  if (!setup.productCommand) throw new Error("there is no product to measure");
  await using stack = new AsyncDisposableStack();
  const env = { BUN_CONFIG_MAX_HTTP_REQUESTS: "4096", SLIPWAY_CHAT_SLOTS: "2000" };
  const options = { command: setup.productCommand, dataDir: join(dir, "data"), core: undefined, env };
  const product = stack.use(await startProduct(options));
  const headers = { "Service-Session-Token": product.adminToken };
  const api = `${product.url}/api/v2`;
  await post(`${api}/chats/providers`, { provider: "openai-compat", base_url: `${model.url}/v1` }, headers);
  await post(`${api}/chats/model-configs`, { provider: "openai-compat", model: "source" }, headers);
  const [organization] = (await (await fetch(`${api}/organizations`, { headers })).json()) as { id: string }[];
  const ids: string[] = [];
  const toContent = (text: string) => ({ content: [{ type: "text", text }] });
  const started = stack.move();
  return {
    pid: product.pid,
    async open(count, onText) {
      for (const chat of range(count)) {
        const body = { organization_id: organization?.id, ...toContent("now") };
        ids[chat] = ((await (await post(`${api}/chats`, body, headers)).json()) as { id: string }).id;
        const url = `${api.replace("http", "ws")}/chats/${ids[chat]}/stream`;
        const socket = new WebSocket(url, { headers } as never);
        started.defer(() => socket.close());
        socket.onmessage = ({ data }) => {
          const text = String(data);
          if (!text.includes('"type":"message"')) onText(chat, text);
        };
        await new Promise((resolve, reject) => {
          socket.onopen = resolve;
          socket.onerror = reject;
        });
      }
    },
    async prompt(chat, text) {
      await (await post(`${api}/chats/${ids[chat]}/messages`, toContent(text), headers)).arrayBuffer();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
};

/** Returns the program of the npm package. Throws a readable message if it is not installed. */
const findOpencode = (): string => {
  const folder = process.env.SLIPWAY_TEST_AGENTS;
  const program = folder && join(folder, "node_modules/.bin/opencode");
  if (program && existsSync(program)) return program;
  throw new Error("opencode is not installed: run `.ci/agents DIR` and set SLIPWAY_TEST_AGENTS to DIR");
};

const startOpencode = async (model: Model, dir: string): Promise<ChatServer & AsyncDisposable> => {
  await using stack = new AsyncDisposableStack();
  const project = join(dir, "project");
  mkdirSync(project);
  const options = { baseURL: `${model.url}/v1`, apiKey: "none" };
  const bench = { npm: "@ai-sdk/openai-compatible", name: "Bench", options, models: { source: { name: "source" } } };
  const config = { provider: { bench }, model: "bench/source", share: "disabled", agent: { title: { disable: true } } };
  const port = await findFreePort();
  const server = stack.use(
    await startServer({
      command: [findOpencode(), "serve", "--port", String(port), "--hostname", "127.0.0.1"],
      env: {
        HOME: dir,
        XDG_CONFIG_HOME: join(dir, "config"),
        XDG_DATA_HOME: join(dir, "data"),
        XDG_CACHE_HOME: join(dir, "cache"),
        XDG_STATE_HOME: join(dir, "state"),
        OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...config, autoupdate: false }),
        // Internet lookups would take 39 s on a machine without a connection.
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
      },
      port,
      readyPath: "/doc",
      core: undefined,
      logFile: join(dir, "opencode.log"),
      cwd: project,
    }),
  );
  const ids: string[] = [];
  const started = stack.move();
  return {
    pid: server.pid,
    async open(count, onText) {
      const abort = new AbortController();
      started.defer(() => abort.abort());
      const events = await fetch(`${server.url}/event`, { signal: abort.signal });
      const chats = new Map<string, number>();
      const follow = async (): Promise<void> => {
        let unterminated = "";
        for await (const bytes of events.body ?? []) {
          const lines = (unterminated + Buffer.from(bytes as Uint8Array).toString()).split("\n");
          unterminated = lines.pop() ?? "";
          for (const line of lines) {
            if (!line.startsWith("data:") || !line.includes('"message.part.')) continue;
            const { properties } = JSON.parse(line.slice(5)) as { properties: PartEvent };
            const chat = chats.get(properties.sessionID ?? properties.part?.sessionID ?? "");
            if (chat !== undefined) onText(chat, properties.delta ?? properties.part?.text ?? "");
          }
        }
      };
      follow().catch(() => {});
      for (const chat of range(count)) {
        const { id } = (await (await post(`${server.url}/session`, {})).json()) as { id: string };
        ids[chat] = id;
        await (await post(`${server.url}/session/${id}/message`, toParts("now"))).arrayBuffer();
        chats.set(id, chat);
      }
    },
    async prompt(chat, text) {
      await (await post(`${server.url}/session/${ids[chat]}/prompt_async`, toParts(text))).arrayBuffer();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
};

type PartEvent = { sessionID?: string; delta?: string; part?: { sessionID?: string; text?: string } };

const toParts = (text: string) => ({ parts: [{ type: "text", text }] });

const nowMs = (): number => performance.timeOrigin + performance.now();

const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

/** Measures one turn in each of `count` chats at the same time. */
const measureTurns = async (bench: Bench, side: SideName, count: number): Promise<Figures> => {
  const dir = mkdtempSync(join(bench.setup.dir, "opencode-"));
  await using model = await startModel(dir);
  await using server = await (side === "floor" ? startOpencode(model, dir) : startSlipway(bench, model, dir));
  const sentAt: number[] = [];
  const [prompts, firstChunks, chunks]: [number[], number[], number[]] = [[], [], []];
  const received = new Set<string>();
  const ended = new Set<number>();
  const { promise: done, resolve } = Promise.withResolvers<void>();
  await server.open(count, (chat, text) => {
    const receivedAt = nowMs();
    const startedAt = sentAt[chat];
    if (startedAt === undefined) return;
    for (const [, stamp = ""] of text.matchAll(/<(\d+\.\d+)>/g)) {
      // A part may be sent again with its full text.
      if (received.has(`${chat} ${stamp}`)) continue;
      received.add(`${chat} ${stamp}`);
      if (prompts[chat] === undefined) {
        prompts[chat] = Number(stamp) - startedAt;
        firstChunks[chat] = receivedAt - startedAt;
      } else chunks.push(receivedAt - Number(stamp));
    }
    // The end of the turn that created the chat may arrive after the prompt.
    if (prompts[chat] === undefined || !text.includes("the end")) return;
    ended.add(chat);
    if (ended.size === count) resolve();
  });
  const cpuBefore = processorMsOfTree(server.pid);
  await Promise.all(
    range(count).map((chat) => {
      sentAt[chat] = nowMs();
      return server.prompt(chat, PROMPT);
    }),
  );
  const timeout = Bun.sleep(TURN_TIMEOUT_MS).then(() => {
    throw new Error(`${ended.size} of ${count} turns ended`);
  });
  await Promise.race([done, timeout]);
  return {
    [`prompt_${count}`]: quantile(prompts, 0.5),
    [`first_${count}`]: quantile(firstChunks, 0.5),
    [`p50_${count}`]: quantile(chunks, 0.5),
    [`p99_${count}`]: quantile(chunks, 0.99),
    [`processor_${count}`]: (processorMsOfTree(server.pid) - cpuBefore) / (CHUNKS * count),
    [`memory_${count}`]: residentMiBOfTree(server.pid),
  };
};

const LABELS = {
  prompt: "prompt to model call, ms",
  first: "prompt to first chunk at the follower, ms",
  p50: "chunk to follower p50 ms",
  p99: "chunk to follower p99 ms",
  processor: "processor ms a chunk",
  memory: "memory MB",
} as const;

const nameChats = (count: number): string => (count === 1 ? "1 chat" : `${count} chats`);

export const opencodeRow: Row = {
  name: "opencode",
  title: `1, 10 and 100 chats answering at the same moment, ${CHUNKS_PER_S} chunks a second each (not pinned); "floor" is opencode`,
  sides: ["floor", "product"],
  maxRounds: 3,
  async measure(bench, side) {
    const figures: Figures = {};
    for (const count of CHATS) Object.assign(figures, await measureTurns(bench, side, count));
    return figures;
  },
  figures: Object.fromEntries(
    CHATS.flatMap((count) =>
      Object.entries(LABELS).map(([name, label]) => [`${name}_${count}`, `${label}, ${nameChats(count)}`]),
    ),
  ),
  verdicts: CHATS.flatMap((count) =>
    Object.entries(LABELS).map(([name, label]) => ({
      what: `${label}, ${nameChats(count)}, product / opencode`,
      target: "< 1",
      value: productRatio(`${name}_${count}`),
      bound: 1,
      better: "lower" as const,
      unit: "ratio" as const,
    })),
  ),
};
