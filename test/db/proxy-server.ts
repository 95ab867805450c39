// A process that owns a LocalStore and serves it over a Unix socket, as a replicated store would. Each request is one batch. The batch's ID
// is written in the same transaction, so that a batch that is sent twice is applied once.

import { deserialize, serialize } from "bun:jsc";
import { Database } from "bun:sqlite";
import { openLocalStore } from "#db/engine/local.ts";
import type { Query, Value } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";

/** A batch of plain SQL, or one read. */
export type ProxyRequest =
  | { kind: "batch"; id: string; queries: { sql: string; params: Value[] }[] }
  | { kind: "read"; sql: string; params: Value[]; method: "all" | "scan" };

export type ProxyAnswer = { rows?: Value[][]; refused?: { reason: string; constraint: string; message: string } };

const [directory = "", socket = ""] = process.argv.slice(2);
const store = openLocalStore({
  directory,
  cacheMb: 8,
  now: Date.now(),
  fatal: (error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(70);
  },
});

// The proxy's bookkeeping: IDs of applied batches, and a table whose constraint fails when a guard is false.
const bookkeeping = new Database(`${directory}/slipway.db`);
bookkeeping.run("create table if not exists proxy_batches (id text primary key)");
bookkeeping.run("create table if not exists proxy_guard (ok integer not null, constraint proxy_guard check (ok = 1))");
bookkeeping.close();

const apply = async ({ id, queries }: Extract<ProxyRequest, { kind: "batch" }>): Promise<ProxyAnswer> => {
  const statements = queries.map(({ sql, params }) => ({ sql, rows: [params] }));
  try {
    await store.commit([{ sql: "insert into proxy_batches (id) values (?)", rows: [[id]] }, ...statements]);
    return {};
  } catch (error) {
    if (!(error instanceof CommitError)) throw error;
    // The batch is already applied, because the response was lost or the request arrived twice.
    if (error.constraint === "proxy_batches.id") return {};
    return { refused: { reason: error.reason, constraint: error.constraint, message: error.message } };
  }
};

const read = async ({ sql, params, method }: Extract<ProxyRequest, { kind: "read" }>): Promise<ProxyAnswer> => {
  const query: Query<Value[]> = { sql, params, map: (row) => row };
  return { rows: await (method === "scan" ? store.scan(query) : store.all(query)) };
};

Bun.serve({
  unix: socket,
  fetch: async (request) => {
    const message = deserialize(await request.arrayBuffer()) as ProxyRequest;
    const response = message.kind === "batch" ? await apply(message) : await read(message);
    return new Response(serialize(response));
  },
});
process.stdout.write(`epoch ${store.epoch}\n`);
