// The statements of a commit group: log lines of many agents are combined into one statement, unless that could change the outcome.
import { expect, test } from "bun:test";
import { SQL } from "bun";
import { updateLogsLength } from "#db/agents/agents.ts";
import { insertAgentLogs } from "#db/agents/logs.ts";
import { deleteSubAgent } from "#db/agents/sub-agents.ts";
import type { Pending } from "#db/engine/pending.ts";
import type { Statement } from "#db/engine/sql.ts";
import { gatherOutgoing } from "#db/pg/gather.ts";
import { openPgStore } from "#db/pg/store.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { createDatabase } from "#test/support/postgres.ts";
import { awaitOutcome } from "../contract.ts";

const makeLines = (firstId: number, count: number): Statement[] =>
  insertAgentLogs(
    firstId,
    1,
    2,
    Array.from({ length: count }, (_, i) => ({ created_at: 0, level: 2, output: `line ${firstId + i}` })),
  );
const countUpdate = updateLogsLength("a", 1);
const makePending = (...batch: Statement[]): Pending => ({ batch, rows: 0, bytes: 0, resolve() {}, reject() {} });
const makeManyPending = (): Pending[] =>
  Array.from({ length: 10 }, (_, i) => makePending(countUpdate, ...makeLines(i * 100, i < 5 ? 1 : 30)));

test("[PQ-11] lines of many batches are written in order by one statement after all others", () => {
  const group = makeManyPending();
  const outgoing = gatherOutgoing(group, true);
  expect(outgoing.map(({ source }) => source && group.indexOf(source))).toEqual([
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    undefined,
  ]);
  const { text = "", params = [] } = outgoing.at(-1)?.sent ?? {};
  expect(text).toStartWith(
    'insert into "agent_logs" (id, agent, source, created_at, level, output) select * from unnest(',
  );
  const ids = String(params[0]).slice(1, -1).split(",").map(Number);
  expect(ids).toHaveLength(5 + 5 * 30);
  expect(ids).toEqual([...ids].sort((a, b) => a - b));
  expect(String(params[5])).toContain('"line 929"}');
});

test("[PQ-11] lines stay in their batch if another statement may touch them, if they are few, and after a rejection", () => {
  const staysInBatches = (group: readonly Pending[], mayCombine = true): boolean =>
    gatherOutgoing(group, mayCombine).every(({ source }) => source !== undefined);
  expect(staysInBatches(makeManyPending(), false)).toBe(true);
  expect(staysInBatches([...makeManyPending(), makePending(...deleteSubAgent({ id: "a", key: 1 }))])).toBe(true);
  const { touches: _touches, ...untagged } = countUpdate;
  expect(staysInBatches([...makeManyPending(), makePending(untagged)])).toBe(true);
  expect(staysInBatches([makePending(countUpdate, ...makeLines(1, 3))])).toBe(true);
  expect(staysInBatches(makeManyPending())).toBe(false);
});

testNeeding(
  [needs.postgres],
  "[PQ-11] if one batch of a combined statement is refused, only its lines are missing",
  async () => {
    const database = await createDatabase();
    const store = await openPgStore({ url: database.url, now: 0, fatal: () => {} });
    await using sql = new SQL(database.url, { max: 1 });
    // Removes the foreign keys, so that the test needs no agents.
    const foreignKeys = await sql.unsafe(
      "select conname as name from pg_constraint where conrelid = 'agent_logs'::regclass and contype = 'f'",
    );
    for (const { name } of foreignKeys) await sql.unsafe(`alter table agent_logs drop constraint "${name}"`);
    const starts = Array.from({ length: 20 }, (_, i) => i * 10);
    // The eighth batch contains an ID of the third one.
    starts[7] = 20;
    const outcomes = await Promise.all(starts.map((firstId) => awaitOutcome(store.commit(makeLines(firstId, 2)))));
    expect(outcomes.map((outcome, i) => (outcome === "done" ? "" : `${i}: ${outcome}`)).filter(Boolean)).toEqual([
      "7: constraint",
    ]);
    const rows = (await sql.unsafe("select id::int as id from agent_logs order by id")) as { id: number }[];
    const expected = starts.filter((_, i) => i !== 7).flatMap((firstId) => [firstId, firstId + 1]);
    expect(rows.map(({ id }) => id)).toEqual(expected.sort((a, b) => a - b));
    await store.close();
    await database.remove();
  },
);
