// Agents and people for the measurements of the capacity model, as a separate process: `agents.ts URLS FILE`, with comma-separated URLs
// that are used in turn, and the file a Crew as JSON. Each input line is an order, each output line its result.
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
 * `connect`: this many more agents, spread over a time as for agents of many people. Otherwise work for `seconds`: so many of a kind per
 * second at random, or by so many callers without a break.
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
  readonly said: string;
};

/** Lines of a batch, and the interval for checking what is due. */
const LINES = 5;
const TICK_MS = 1;

const [urls = "", file = ""] = process.argv.slice(2);
const crew = JSON.parse(await Bun.file(file).text()) as Crew;
const nodes = urls.split(",");
const connected: RpcAgent[] = [];
let turn = 0;
const nextOf = <T>(list: readonly T[]): T => list[turn++ % list.length] as T;
let requested = 0;
const nextNode = (): string => nodes[requested++ % nodes.length] as string;

/** As a daemon does at startup. */
const connect = async (token: string): Promise<void> => {
  const one = await connectAgent({ url: new URL(nextNode()) } as never, token);
  const at = { seconds: BigInt(Math.floor(Date.now() / 1000)), nanos: 0 };
  await one.agent.getManifest({});
  await one.agent.updateStartup({ startup: { version: "v2.34.1", expandedDirectory: "/home/dev", subsystems: [] } });
  await one.agent.updateLifecycle({ lifecycle: { state: 2, changedAt: at } });
  await one.agent.updateLifecycle({ lifecycle: { state: 5, changedAt: at } });
  connected.push(one);
};

/** Throws unless the response is successful. */
const request = async (token: string, method: string, path: string, body?: unknown): Promise<void> => {
  const answer = await new Client(nextNode(), token).fetch(method, `/api/v2${path}`, body);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
};

const ACTS: Record<Exclude<Kind, "connect" | "heartbeat">, () => Promise<unknown>> = {
  stats: () => nextOf(connected).agent.updateStats({ stats: { rxBytes: 5n, txBytes: 7n } }),
  metadata: () =>
    nextOf(connected).agent.batchUpdateMetadata({
      metadata: ["cpu", "disk", "load"].map((key) => ({ key, result: { value: `${Math.random()}` } })),
    }),
  lines: () => {
    const { token, logSourceId } = nextOf(crew.agents);
    const logs = Array.from({ length: LINES }, (_, i) => ({
      output: `line ${i} of a batch, of usual length, at ${Date.now()}`,
    }));
    return request(token, "PATCH", "/workspaceagents/me/logs", { log_source_id: logSourceId, logs });
  },
  turn: () => {
    const { id, token } = nextOf(crew.chats);
    return request(token, "POST", `/chats/${id}/messages`, { content: [{ type: "text", text: "now" }] });
  },
  list: () => request(crew.admin, "GET", "/workspaces?limit=25"),
};

/** Returns the milliseconds until the next of randomly arriving requests. */
const randomGap = (per_s: number): number => (-Math.log(1 - Math.random()) / per_s) * 1000;

const work = async ({ seconds, per_s, callers = {} }: Work): Promise<OrderResult> => {
  const done: Partial<Record<Kind, number>> = {};
  let [failed, message] = [0, ""];
  const one = async (kind: keyof typeof ACTS): Promise<void> => {
    try {
      await ACTS[kind]();
      done[kind] = (done[kind] ?? 0) + 1;
    } catch (error) {
      failed++;
      message = `${kind}: ${error}`;
    }
  };
  const started = performance.now();
  const isOver = (): boolean => performance.now() - started > seconds * 1000;
  const open = new Set<Promise<void>>();
  const loops = Object.entries(callers).flatMap(([kind, count]) =>
    Array.from({ length: count }, async () => {
      while (!isOver()) await one(kind as keyof typeof ACTS);
    }),
  );
  const due = new Map(Object.entries(per_s).map(([kind, rate]) => [kind, started + randomGap(rate)]));
  while (!isOver()) {
    for (const [kind, rate] of Object.entries(per_s)) {
      let at = due.get(kind) ?? 0;
      for (; at <= performance.now(); at += randomGap(rate)) {
        const promise = one(kind as keyof typeof ACTS).finally(() => open.delete(promise));
        open.add(promise);
      }
      due.set(kind, at);
    }
    await Bun.sleep(TICK_MS);
  }
  await Promise.all([...loops, ...open]);
  return { done, failed, said: message };
};

const handleOrder = async (order: Order): Promise<OrderResult> => {
  if (!("connect" in order)) return await work(order);
  const tokens = crew.agents.slice(connected.length, connected.length + order.connect);
  const pause_ms = (order.seconds * 1000) / tokens.length;
  const started = performance.now();
  const open = [];
  for (const [i, { token }] of tokens.entries()) {
    while (performance.now() < started + i * pause_ms) await Bun.sleep(TICK_MS);
    open.push(connect(token));
  }
  await Promise.all(open);
  return { done: { connect: tokens.length }, failed: 0, said: "" };
};

for await (const line of readLines(Bun.stdin.stream()))
  process.stdout.write(`${JSON.stringify(await handleOrder(JSON.parse(line) as Order))}\n`);
process.exit(0);
