// The row about chat tools: the time between the model's last token and its next call, with one active chat, with a hundred, and on a file
// of 5 MB. It uses real local workspaces with their daemons; the model answers in this process.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Template } from "#schema/templates/template.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { Client } from "#src/client.ts";
import { type ModelCall, ModelServer } from "#test/support/models/model-server.ts";
import { type Product, startProduct } from "../product.ts";
import { type Bench, type Figures, productFigure, type Row, range } from "../row.ts";

const SINGLE_CALLS = 300;
const EDITS = 20;
const THINK_MS = 1_000;
const CHATS = 100;
/** A daemon runs at most 64 programs at a time. */
const WORKSPACES = 4;
const MAKE_BIG_FILE = "seq -f 'line %.0f of a file of five million bytes' 1 115000 > big.txt; stat -c %s big.txt";
const ENV = { SLIPWAY_CHAT_SLOTS: "200", SLIPWAY_CHAT_TITLES: "false", BUN_CONFIG_MAX_HTTP_REQUESTS: "1024" };

type ToolCall = readonly [name: string, args: object];
const TRUE: ToolCall = ["execute", { command: "true", timeout: "60s" }];

/** Answers a model call with tool calls, or with a text that ends the turn. */
const answerCall = (call: ModelCall, toolCall: ToolCall | undefined): void => {
  if (!toolCall) {
    call.say({ text: "so be it" }, { finish: "stop" }).end();
    return;
  }
  const [name, args] = toolCall;
  const message = { id: crypto.randomUUID() as string, name, args: JSON.stringify(args) };
  call.say({ call: message }, { finish: "tool_calls" }).end();
};

type ToolBench = {
  readonly client: Client;
  readonly model: ModelServer;
  readonly workspaces: string[];
  readonly product: Product;
};

const openToolBench = async (bench: Bench, stack: AsyncDisposableStack): Promise<ToolBench> => {
  const { productCommand, dir } = bench.setup;
  if (!productCommand) throw new Error("there is no product to measure");
  const folder = join(dir, `tools-${++folderCount}`);
  mkdirSync(folder);
  const model = stack.use(await ModelServer.start());
  const dataDir = join(folder, "data");
  // Not pinned, because daemons and their programs would be pinned too.
  const product = stack.use(
    await startProduct({ command: productCommand, dataDir, core: undefined, env: { ...ENV, HOME: folder } }),
  );
  const client = new Client(product.url, product.adminToken);
  await client.post("/api/v2/chats/providers", { provider: "openai-compat", base_url: `${model.url}/v1` });
  await client.post("/api/v2/chats/model-configs", { provider: "openai-compat", model: "source" });
  const template_id = await findLocalTemplate(client);
  const workspaces: string[] = [];
  stack.defer(() => Promise.all(workspaces.map((id) => deleteWorkspace(client, id))).then(() => {}));
  for (const n of range(WORKSPACES)) {
    const body = { name: `tools-${n}`, template_id };
    workspaces.push((await client.post<Workspace>("/api/v2/users/me/workspaces", body)).id);
  }
  for (const id of workspaces)
    await awaitWorkspace(
      client,
      id,
      (workspace) => workspace.latest_build.resources[0]?.agents[0]?.status === "connected",
    );
  return { client, model, workspaces, product };
};

let folderCount = 0;

/** Returns the built-in template, which a new server has after its import. */
const findLocalTemplate = async (client: Client): Promise<string> => {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await Bun.sleep(50)) {
    const local = (await client.get<Template[]>("/api/v2/templates")).find(({ name }) => name === "local");
    if (local) return local.id;
  }
  throw new Error("the server has no template local");
};

/** Deletes a workspace. That also ends its daemon, which would outlive the server. */
const deleteWorkspace = async (client: Client, id: string): Promise<void> => {
  await client.post(`/api/v2/workspaces/${id}/builds`, { transition: "delete" });
  await awaitWorkspace(client, id, ({ latest_build }) => latest_build.status === "deleted");
};

const awaitWorkspace = async (
  client: Client,
  id: string,
  isReached: (workspace: Workspace) => boolean,
): Promise<void> => {
  for (const deadline = performance.now() + 60_000; performance.now() < deadline; await Bun.sleep(50)) {
    if (isReached(await client.get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`))) return;
  }
  throw new Error("a workspace did not reach the expected state in 60 s");
};

const startChat = async ({ client }: ToolBench, workspace_id: string | undefined): Promise<void> => {
  const [organization] = await client.get<{ id: string }[]>("/api/v2/users/me/organizations");
  const content = [{ type: "text", text: "go" }];
  await client.post<unknown>("/api/v2/chats", { organization_id: organization?.id, workspace_id, content });
};

/** Measures the milliseconds from each tool call to the model call with its result, in one chat. */
const measureSingleChat = async (toolBench: ToolBench, toolCalls: readonly ToolCall[]): Promise<number[]> => {
  const times: number[] = [];
  await startChat(toolBench, toolBench.workspaces[0]);
  let call = await toolBench.model.next();
  for (const toolCall of toolCalls) {
    const startedAt = performance.now();
    answerCall(call, toolCall);
    call = await toolBench.model.next();
    times.push(call.received_at - startedAt);
    const result = JSON.stringify((call.body.messages as unknown[]).at(-1));
    if (/error/.test(result)) throw new Error(`a tool failed: ${result.slice(0, 500)}`);
  }
  answerCall(call, undefined);
  return times;
};

/** Measures a GET every millisecond while all chats run commands one after the other. */
const measureAllChats = async (bench: Bench, toolBench: ToolBench): Promise<Figures> => {
  let calls = 0;
  let isOver = false;
  let [endedCount, resolveAll] = [0, () => {}];
  const allEnded = new Promise<void>((resolve) => (resolveAll = resolve));
  const serve = async (): Promise<void> => {
    for (;;) {
      const call = await toolBench.model.next();
      calls += 1;
      // Simulates the latency of a fast model. The chats must not run in lockstep.
      setTimeout(
        () => {
          answerCall(call, isOver ? undefined : TRUE);
          if (!isOver) return;
          endedCount += 1;
          if (endedCount === CHATS) resolveAll();
        },
        THINK_MS * (0.5 + Math.random()),
      );
    }
  };
  void serve();
  for (const n of range(CHATS)) await startChat(toolBench, toolBench.workspaces[n % WORKSPACES]);
  const [callsBefore, startedAt] = [calls, performance.now()];
  const line = { kind: "probe", path: "/healthz", token: "none" } as const;
  const { probe } = await bench.driver.load(Number(new URL(toolBench.product.url).port), [line], {
    secs: bench.seconds,
    warm: 1,
    probe_us: 1000,
  });
  const calls_per_s = ((calls - callsBefore) / (performance.now() - startedAt)) * 1000;
  isOver = true;
  await allEnded;
  return { loop_p50: probe.p50, loop_p99: probe.p99, loop_max: probe.max, calls_per_s };
};

const percentile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0;

export const tools: Row = {
  name: "tools",
  title: `Chat tools in local workspaces (not pinned): one chat running "true"; ${CHATS} such chats with 1 s between calls; edit_files on 5 MB`,
  sides: ["product"],
  maxRounds: 3,
  async measure(bench) {
    await using stack = new AsyncDisposableStack();
    const toolBench = await openToolBench(bench, stack);
    const times = await measureSingleChat(
      toolBench,
      Array.from({ length: SINGLE_CALLS }, () => TRUE),
    );
    const edit = (n: number): ToolCall => {
      const edits = [{ old_text: `line ${50_000 + n} of a file`, new_text: `line ${50_000 + n} of an edited file` }];
      return ["edit_files", { files: [{ path: "big.txt", edits }] }];
    };
    const [, ...edits] = await measureSingleChat(toolBench, [
      ["execute", { command: MAKE_BIG_FILE, timeout: "60s" }],
      ...range(EDITS).map(edit),
    ]);
    const crowd = await measureAllChats(bench, toolBench);
    return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), edit_p50: percentile(edits, 0.5), ...crowd };
  },
  figures: {
    p50: "call to result p50 ms",
    p99: "call to result p99 ms",
    edit_p50: "edit of 5 MB p50 ms",
    loop_p50: "GET /healthz p50 ms",
    loop_p99: "GET /healthz p99 ms",
    loop_max: "GET /healthz longest ms",
    calls_per_s: "calls/s of all chats",
  },
  verdicts: [
    {
      what: 'execute "true": from the call to its result at the model, p50',
      target: "<= 12 ms",
      value: productFigure("p50"),
      bound: 12,
      better: "lower",
      unit: "ms",
    },
    {
      what: "edit_files on 5 MB, p50",
      target: "< 150 ms",
      value: productFigure("edit_p50"),
      bound: 150,
      better: "lower",
      unit: "ms",
    },
    {
      what: `event-loop delay while ${CHATS} chats run tools, as a GET every ms sees it, p99`,
      target: "< 10 ms",
      value: productFigure("loop_p99"),
      bound: 10,
      better: "lower",
      unit: "ms",
    },
  ],
};
