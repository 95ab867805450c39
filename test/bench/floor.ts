// The baseline of `bun run bench`: the minimal Bun server for each measured row, written by hand on Bun.serve and bun:sqlite. run.ts starts
// it as a separate process: bun floor.ts <port> <data dir> [<GET sample file>]. It uses the product's paths, so that the driver treats both
// alike. It has no users, actors or limits; the token only selects the agent.
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FormatRegistry, Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { ServerWebSocket } from "bun";

/** The product's queries and response for one `GET /workspaces/{id}`, which product.ts has recorded and the baseline replays. */
export interface GetSample {
  /** SQLite file to open read-only. */
  database: string;
  /** The prepared SELECTs of one request, in order. */
  queries: { sql: string; params: (string | number | null)[] }[];
  /** The exact response: requested path, status, headers that do not depend on the connection, body. */
  path: string;
  status: number;
  headers: Record<string, string>;
  body: string;
}

const [portArg, dataDir, sampleFile] = process.argv.slice(2);
if (!portArg || !dataDir) throw new Error("usage: bun floor.ts <port> <data dir> [<GET sample file>]");

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;
FormatRegistry.Set("date-time", (value) => rfc3339.test(value));
const levels = { trace: 0, debug: 1, info: 2, warn: 3, error: 4 } as const;
const PatchLogs = Type.Object({
  log_source_id: Type.String({ pattern: "^[0-9a-f-]{36}$" }),
  logs: Type.Array(
    Type.Object({
      created_at: Type.String({ format: "date-time" }),
      level: Type.Union([
        Type.Literal("trace"),
        Type.Literal("debug"),
        Type.Literal("info"),
        Type.Literal("warn"),
        Type.Literal("error"),
      ]),
      output: Type.String(),
    }),
    { maxItems: 5000 },
  ),
});
const patchLogs = TypeCompiler.Compile(PatchLogs);

const file = join(dataDir, "floor.db");
const db = new Database(file);
db.run("pragma journal_mode=wal");
db.run("pragma wal_autocheckpoint=0");
db.run("pragma synchronous=full");
db.run("pragma cache_size=-65536");
db.run("create table agents(id integer primary key, logs_length integer not null, seq integer not null)");
db.run(
  "create table logs(id integer primary key, agent integer not null, source integer not null, created integer not null, level integer not null, output text not null)",
);
db.run("create index logs_agent on logs(agent, id)");
const insertLog = db.prepare("insert into logs values(?,?,?,?,?,?)");
const countAgent = db.prepare(
  "insert into agents values(?1,?2,?3) on conflict(id) do update set logs_length=logs_length+?2, seq=?3",
);

// A Worker's connection runs the checkpoints. The writer runs one only if the WAL exceeds 64 MiB of 4 KiB pages.
const MAX_WAL_PAGES = 16_384;
let walPages = 0;
const checkpoints = new Worker(new URL("./floor-checkpoint.ts", import.meta.url));
checkpoints.onmessage = (event: MessageEvent<number>) => {
  walPages = event.data;
};
checkpoints.postMessage(file);

interface Batch {
  agent: number;
  first: number;
  length: number;
  logs: { created_at: string; level: keyof typeof levels; output: string }[];
  done: () => void;
}
let queue: Batch[] = [];
let nextId = 1;

const write = db.transaction((batches: Batch[]) => {
  for (const { agent, first, length, logs } of batches) {
    let id = first;
    for (const log of logs) insertLog.run(id++, agent, 1, Date.parse(log.created_at), levels[log.level], log.output);
    countAgent.run(agent, length, first);
  }
});

function flush(): void {
  const batches = queue;
  queue = [];
  write(batches);
  if (walPages > MAX_WAL_PAGES) {
    db.run("pragma wal_checkpoint(truncate)");
    walPages = 0;
  }
  for (const batch of batches) batch.done();
}

/** Resolves once the batch is on disk. Everything queued in one turn of the event loop is one commit. */
function commit(batch: Omit<Batch, "done">): Promise<void> {
  return new Promise((done) => {
    if (queue.push({ ...batch, done }) === 1) setImmediate(flush);
  });
}

const JSON_HEADERS = { headers: { "content-type": "application/json" } };
const ACCEPTED = '{"message":"Logs accepted","detail":"","validations":[]}';
const parseAgent = (request: Request): number => Number(request.headers.get("service-session-token"));

async function storeLogs(request: Request): Promise<Response> {
  const body: unknown = await request.json();
  if (!patchLogs.Check(body)) return new Response("{}", { status: 400 });
  const agent = parseAgent(request);
  const { logs, log_source_id: source_id } = body;
  const first = nextId;
  nextId += logs.length;
  let length = 0;
  for (const log of logs) length += log.output.length;
  await commit({ agent, first, length, logs });
  const topic = `a${agent}`;
  if (server.subscriberCount(topic) > 0) {
    const frame = logs.map((log, index) => ({
      id: first + index,
      created_at: log.created_at,
      level: log.level,
      output: log.output,
      source_id,
    }));
    server.publish(topic, JSON.stringify(frame));
  }
  return new Response(ACCEPTED, JSON_HEADERS);
}

/** Uses only Bun's publish: sends one frame of the product's size, created from the body's text without parsing or storing it. */
async function publishOnly(request: Request): Promise<Response> {
  const text = await request.text();
  const entries = text.slice(text.indexOf("[{") + 2, -1);
  server.publish(
    `a${parseAgent(request)}`,
    `[{"id":1000000,"source_id":"7c2f6a1e-3b0d-4c55-9a57-0a5f1e6b2c11",${entries}`,
  );
  return new Response(ACCEPTED, JSON_HEADERS);
}

/** Returns a handler that runs the recorded SELECTs with prepared statements and sends the recorded bytes. */
function replay(path: string): (request: Request) => Response {
  const sample: GetSample = JSON.parse(readFileSync(path, "utf8"));
  const source = new Database(sample.database, { readonly: true });
  const queries = sample.queries.map(({ sql, params }) => ({
    statement: source.prepare<unknown, SQLQueryBindings[]>(sql),
    params,
  }));
  return () => {
    for (const { statement, params } of queries) statement.all(...params);
    return new Response(sample.body, { status: sample.status, headers: sample.headers });
  };
}

const server = Bun.serve({
  port: Number(portArg),
  hostname: "127.0.0.1",
  routes: {
    "/probe": () => new Response(ACCEPTED, JSON_HEADERS),
    "/publish": publishOnly,
    "/api/v2/workspaceagents/me/logs": { PATCH: storeLogs },
    "/api/v2/workspaceagents/:agent/logs": (request) => {
      if (server.upgrade(request, { data: request.params.agent })) return;
      return new Response("websocket only", { status: 400 });
    },
    "/sample": sampleFile ? replay(sampleFile) : () => new Response("no sample", { status: 404 }),
  },
  websocket: {
    data: "" as string,
    backpressureLimit: 1 << 20,
    closeOnBackpressureLimit: true,
    open(socket: ServerWebSocket<string>) {
      socket.subscribe(`a${socket.data}`);
    },
    message() {},
  },
});
