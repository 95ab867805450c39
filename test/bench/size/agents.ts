// Agents and people for the measurements of the capacity model, in a separate process: `agents.ts URLS FILE`, with comma-separated URLs
// that are used in turn, and a file with a Crew as JSON. Each line of input is an order; each line of output is its result.
import { Client } from "#src/client.ts";
import { connectAgent, type RpcAgent } from "#test/api/agents/rpc-agent.ts";
import { readLines } from "#test/support/net/lines.ts";
import type { Kind } from "./model.ts";

export type Crew = {
  readonly admin: string;
  readonly agents: readonly { readonly token: string; readonly logSourceId: string }[];
  readonly chats: readonly { readonly id: string; readonly token: string }[];
};
/**
 * `connect`: connects so many more agents, spread over `seconds`, like the agents of many people. Otherwise, works for `seconds`: `per_s`
 * is the number per second of each kind, at random times; `callers` is the number of callers that work without pauses.
 */
export type Order = { readonly connect: number; readonly seconds: number } | Work;
export type Work = {
  readonly seconds: number;
  readonly per_s: Partial<Record<Kind, number>>;
  readonly callers?: Partial<Record<Kind, number>>;
};
export type OrderResult = {
  readonly done: Partial<Record<Kind, number>>;
  readonly failed: number;
  readonly message: string;
};

const LINES_PER_BATCH = 5;
/** The interval at which `work` checks what is due. */
const TICK_MS = 1;

const [urls = "", file = ""] = process.argv.slice(2);
const crew = JSON.parse(await Bun.file(file).text()) as Crew;
const nodes = urls.split(",");
const connected: RpcAgent[] = [];
let pickCount = 0;
const pickNext = <T>(list: readonly T[]): T => list[pickCount++ % list.length] as T;
let requestCount = 0;
const nextNode = (): string => nodes[requestCount++ % nodes.length] as string;

/** Connects an agent and reports what a daemon reports at startup. */
const connect = async (token: string): Promise<void> => {
  const rpcAgent = await connectAgent({ url: new URL(nextNode()) } as never, token);
  const now = { seconds: BigInt(Math.floor(Date.now() / 1000)), nanos: 0 };
  await rpcAgent.agent.getManifest({});
  await rpcAgent.agent.updateStartup({
    startup: { version: "v2.34.1", expandedDirectory: "/home/dev", subsystems: [] },
  });
  await rpcAgent.agent.updateLifecycle({ lifecycle: { state: 2, changedAt: now } });
  await rpcAgent.agent.updateLifecycle({ lifecycle: { state: 5, changedAt: now } });
  connected.push(rpcAgent);
};

/** Throws unless the response is successful. */
const request = async (token: string, method: string, path: string, body?: unknown): Promise<void> => {
  const response = await new Client(nextNode(), token).fetch(method, `/api/v2${path}`, body);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
};

const ACTIONS: Record<Exclude<Kind, "connect" | "heartbeat">, () => Promise<unknown>> = {
  stats: () => pickNext(connected).agent.updateStats({ stats: { rxBytes: 5n, txBytes: 7n } }),
  metadata: () =>
    pickNext(connected).agent.batchUpdateMetadata({
      metadata: ["cpu", "disk", "load"].map((key) => ({ key, result: { value: `${Math.random()}` } })),
    }),
  lines: () => {
    const { token, logSourceId } = pickNext(crew.agents);
    const logs = Array.from({ length: LINES_PER_BATCH }, (_, i) => ({
      output: `line ${i} of a batch, of usual length, at ${Date.now()}`,
    }));
    return request(token, "PATCH", "/workspaceagents/me/logs", { log_source_id: logSourceId, logs });
  },
  turn: () => {
    const { id, token } = pickNext(crew.chats);
    return request(token, "POST", `/chats/${id}/messages`, { content: [{ type: "text", text: "now" }] });
  },
  list: () => request(crew.admin, "GET", "/workspaces?limit=25"),
};

/** Returns a random time in milliseconds until the next request. */
const drawGapMs = (per_s: number): number => (-Math.log(1 - Math.random()) / per_s) * 1000;

const work = async ({ seconds, per_s, callers = {} }: Work): Promise<OrderResult> => {
  const doneCounts: Partial<Record<Kind, number>> = {};
  let [failed, message] = [0, ""];
  const runAction = async (kind: keyof typeof ACTIONS): Promise<void> => {
    try {
      await ACTIONS[kind]();
      doneCounts[kind] = (doneCounts[kind] ?? 0) + 1;
    } catch (error) {
      failed++;
      message = `${kind}: ${error}`;
    }
  };
  const startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > seconds * 1000;
  const pending = new Set<Promise<void>>();
  const loops = Object.entries(callers).flatMap(([kind, count]) =>
    Array.from({ length: count }, async () => {
      while (!isOver()) await runAction(kind as keyof typeof ACTIONS);
    }),
  );
  const due = new Map(Object.entries(per_s).map(([kind, rate]) => [kind, startedAt + drawGapMs(rate)]));
  while (!isOver()) {
    for (const [kind, rate] of Object.entries(per_s)) {
      let dueAt = due.get(kind) ?? 0;
      for (; dueAt <= performance.now(); dueAt += drawGapMs(rate)) {
        const promise = runAction(kind as keyof typeof ACTIONS).finally(() => pending.delete(promise));
        pending.add(promise);
      }
      due.set(kind, dueAt);
    }
    await Bun.sleep(TICK_MS);
  }
  await Promise.all([...loops, ...pending]);
  return { done: doneCounts, failed, message };
};

const handleOrder = async (order: Order): Promise<OrderResult> => {
  if (!("connect" in order)) return await work(order);
  const tokens = crew.agents.slice(connected.length, connected.length + order.connect);
  const pause_ms = (order.seconds * 1000) / tokens.length;
  const startedAt = performance.now();
  const pending = [];
  for (const [i, { token }] of tokens.entries()) {
    while (performance.now() < startedAt + i * pause_ms) await Bun.sleep(TICK_MS);
    pending.push(connect(token));
  }
  await Promise.all(pending);
  return { done: { connect: tokens.length }, failed: 0, message: "" };
};

for await (const line of readLines(Bun.stdin.stream()))
  process.stdout.write(`${JSON.stringify(await handleOrder(JSON.parse(line) as Order))}\n`);
process.exit(0);
