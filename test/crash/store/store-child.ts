// A process that writes through a LocalStore until it is killed, and prints what it has sent and what was acknowledged:
// - open <epoch> | s <client> <n> <first id> <count> | a <client> <n> | r <client> <n> <reason> | fatal <why> | closed
// Used by the crash, power-loss and disk-fault tests; test/crash/store/store-oracle.ts parses the output.
import { writeSync } from "node:fs";
import { eq, sql } from "drizzle-orm";
import { armFailpoint } from "#base/failpoint.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { build, insertInto, query, statement } from "#db/engine/sql.ts";
import { CommitError } from "#db/engine/store.ts";
import { agent_logs } from "#db/schema/agents.ts";
import { settings } from "#db/schema/core.ts";

export type ChildOrder = {
  directory: string;
  clients: number;
  /** The number of each client's first batch. */
  from: number[];
  failpoint?: string;
  /** Number of batches per client, after which the process closes the store and exits. Without it, the process runs until it is killed. */
  batches?: number;
  /** Continues after a rejection instead of stopping this client. */
  patient?: boolean;
};

/** Returns a line of output that tells the oracle its client. */
const makeLine = (client: number, n: number, i: number): string =>
  `c${client} n${n} i${i} ${"x".repeat((n * 37) % 400)}`;

const INSERT_LINES = insertInto(agent_logs);
const INSERT_MARK = insertInto(settings);
const moveMark = statement<{ key: string; from: string; to: string }>(
  build
    .update(settings)
    .set({ value: sql`${sql.placeholder("to")}` })
    .where(sql`${settings.key} = ${sql.placeholder("key")} and ${settings.value} = ${sql.placeholder("from")}`),
  { expect: 1 },
);
const findMark = query(
  build
    .select()
    .from(settings)
    .where(eq(settings.key, sql.placeholder("key"))),
);

/** Prints synchronously, so that the output survives the process. */
const printLine = (line: string): void => {
  for (let remaining = `${line}\n`; remaining; ) {
    try {
      remaining = remaining.slice(writeSync(1, remaining));
    } catch (error) {
      if ((error as { code?: string }).code !== "EAGAIN") throw error;
    }
  }
};

const order = JSON.parse(process.argv[2] ?? "") as ChildOrder;
if (order.failpoint) armFailpoint(order.failpoint);
const store = openLocalStore({
  directory: order.directory,
  cacheMb: 8,
  now: Date.now(),
  fatal: (error) => {
    printLine(`fatal ${error.message}`);
    process.exit(70);
  },
});
printLine(`open ${store.epoch}`);

/** Sends a batch with a row that already exists, so that the whole batch must be rejected. */
const sendInvalidBatch = async (takenId: number, freeId: number): Promise<void> => {
  const row = { agent: 0, source: 0, created_at: 0, level: 0, output: "never" };
  const refusal = await store
    .commit([INSERT_LINES([freeId, takenId].map((id) => ({ id, ...row })))])
    .catch((error) => error);
  if (!(refusal instanceof CommitError)) printLine("fatal a batch that must be refused was acknowledged");
};

const write = async (client: number, n: number): Promise<boolean> => {
  const count = 1 + (n % 7);
  const firstId = await store.reserve("agent_logs", count);
  const key = `client-${client}`;
  const storedMark = (await store.get(findMark({ key })))?.value;
  const mark =
    storedMark === undefined ? INSERT_MARK({ key, value: `${n}` }) : moveMark({ key, from: storedMark, to: `${n}` });
  const rows = Array.from({ length: count }, (_, i) => ({
    id: firstId + i,
    agent: client,
    source: n,
    created_at: i,
    level: 2,
    output: makeLine(client, n, i),
  }));
  printLine(`s ${client} ${n} ${firstId} ${count}`);
  await store.commit([INSERT_LINES(rows), mark]);
  printLine(`a ${client} ${n}`);
  if (n % 5 === 0) await sendInvalidBatch(firstId, await store.reserve("agent_logs", 1));
  return true;
};

const runClient = async (client: number): Promise<void> => {
  const start = order.from[client] ?? 1;
  for (let n = start; order.batches === undefined || n < start + order.batches; n++) {
    try {
      await write(client, n);
    } catch (error) {
      printLine(`r ${client} ${n} ${error instanceof CommitError ? error.reason : `unknown ${error}`}`);
      if (!order.patient) return;
      // Reads still work, no matter what the disk rejects.
      await store.scan(findMark({ key: `client-${client}` }));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
};

await Promise.all(Array.from({ length: order.clients }, (_, client) => runClient(client)));
await store.close();
printLine("closed");
