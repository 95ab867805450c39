// Why there are no interactive transactions: the behavior of Drizzle's own on this driver. If this test
// ever fails, the driver was fixed and the rule may be reconsidered.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

const notes = sqliteTable("notes", { id: integer().primaryKey(), body: text().notNull() });

const openNotebook = () => {
  const client = new Database(":memory:");
  client.run("create table notes (id integer primary key, body text not null)");
  const listBodies = () => client.query("select body from notes order by id").values().flat();
  return { client, db: drizzle(client), listBodies };
};

describe("the reason for batches", () => {
  test("[ST-20] an async transaction of Drizzle commits at its first await and does not roll back", async () => {
    const { db, client, listBodies } = openNotebook();
    const failing = db.transaction(async (tx) => {
      tx.insert(notes).values({ body: "first half" }).run();
      await Promise.resolve();
      throw new Error("no");
    });
    expect(client.inTransaction).toBe(false);
    await expect(failing).rejects.toThrow("no");
    await failing.catch(() => {});
    expect(listBodies()).toEqual(["first half"]);
  });

  test("[ST-20] other callers' writes are interleaved with an async transaction", async () => {
    const { db, client, listBodies } = openNotebook();
    const gate = Promise.withResolvers<void>();
    const slow = db.transaction(async (tx) => {
      tx.insert(notes).values({ body: "first half" }).run();
      await gate.promise;
      tx.insert(notes).values({ body: "second half" }).run();
    });
    client.run("insert into notes (body) values ('another request')");
    gate.resolve();
    await slow;
    expect(listBodies()).toEqual(["first half", "another request", "second half"]);
  });
});
