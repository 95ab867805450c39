// Versions that tell readers whether a cached response is still valid: a version increases with each write to the data of the response.
import { expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import { insertAgentLogs } from "#db/agents/logs.ts";
import { openLocalStore } from "#db/engine/local.ts";
import { build, type Statement, statement } from "#db/engine/sql.ts";
import { agent_logs, agents } from "#db/schema/agents.ts";
import { api_keys } from "#db/schema/users.ts";
import { workspaces } from "#db/schema/workspaces.ts";
import { changeSetting, insertSetting, insertUser, makeUser } from "./batches.ts";
import { temporaryDirectory } from "./deployments.ts";

const noopUpdate = (table: SQLiteTable & { readonly id: AnySQLiteColumn }): Statement =>
  statement(
    build
      .update(table)
      .set({ id: sql`id` })
      .where(eq(table.id, sql.placeholder("id"))),
  )({ id: "missing" });

test("[ST-23] increases a version before the write is acknowledged, and only for readers of the written rows", async () => {
  using temp = temporaryDirectory();
  const store = openLocalStore({ directory: temp.path, cacheMb: 16, now: 0, fatal: () => {} });
  const readVersions = () => [
    store.shownVersion,
    store.callersVersion,
    store.getVersion("one"),
    store.getVersion("other"),
    store.listedVersion,
  ];
  /**
   * Returns how much a write increases each version: what lists show, callers, one workspace, another one, and which workspaces lists
   * contain.
   */
  const measureIncrease = async (batch: readonly Statement[], about?: string): Promise<number[]> => {
    const before = readVersions();
    await store.commit(batch, { about }).catch(() => {});
    return readVersions().map((version, i) => version - (before[i] ?? 0));
  };
  expect(await measureIncrease([noopUpdate(agents)])).toEqual([1, 0, 1, 1, 1]);
  expect(await measureIncrease([noopUpdate(agents), noopUpdate(agent_logs)], "one")).toEqual([1, 0, 1, 0, 0]);
  expect(await measureIncrease([noopUpdate(agents), noopUpdate(workspaces)], "one")).toEqual([1, 0, 1, 1, 1]);
  expect(await measureIncrease([noopUpdate(agent_logs)], "one")).toEqual([0, 0, 0, 0, 0]);
  const line = { created_at: 0, level: 2, output: "a line" };
  expect(await measureIncrease(insertAgentLogs(1, 1, 1, [line, line]), "one")).toEqual([0, 0, 0, 0, 0]);
  expect(await measureIncrease([noopUpdate(api_keys)])).toEqual([0, 1, 0, 0, 0]);
  expect(await measureIncrease([insertUser(makeUser("jo"))])).toEqual([1, 1, 1, 1, 1]);
  expect(
    await measureIncrease([{ sql: "with x as (select 1) delete from users where id = ?", rows: [["missing"]] }]),
  ).toEqual([1, 1, 1, 1, 1]);
  // A handwritten statement must declare what it touches.
  expect(await measureIncrease([{ sql: "delete from timers where id = ?", rows: [["missing"]], touches: [] }])).toEqual(
    [0, 0, 0, 0, 0],
  );
  // After a rejected or unknown write, versions increase too, because a reader may have seen the change.
  expect(
    await measureIncrease([
      insertSetting({ key: "a", value: "1" }),
      { ...changeSetting("b", { value: "2" }), expect: 1 },
    ]),
  ).toEqual([1, 0, 1, 1, 1]);
  await store.close();
});
