// Compiling Drizzle builders to data: bound parameters, value conversions, and row conversions.
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { count, eq, sql } from "drizzle-orm";
import { integer, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import {
  build,
  deleteBy,
  insertInto,
  type Query,
  query,
  type Statement,
  statement,
  updateBy,
  type Value,
} from "#db/engine/sql.ts";

const boats = sqliteTable("boats", {
  id: integer().primaryKey(),
  name: text().notNull(),
  afloat: integer({ mode: "boolean" }).notNull().default(false),
  crew: text({ mode: "json" }).$type<string[]>().notNull().default([]),
  length: real(),
  home: integer(),
});
const ports = sqliteTable("ports", {
  id: integer().primaryKey(),
  name: text(),
  open: integer({ mode: "boolean" }),
  tags: text({ mode: "json" }).$type<string[]>(),
});

const openHarbour = () => {
  const db = new Database(":memory:", { strict: true });
  db.run(
    "create table boats (id integer primary key, name text, afloat integer, crew text, length real, home integer)",
  );
  db.run("create table ports (id integer primary key, name text, open integer, tags text)");
  return {
    run: ({ sql: text, rows }: Statement) => rows.map((row) => db.prepare(text).run(...(row as never[])).changes),
    all: <T>({ sql: text, params, map }: Query<T>): T[] =>
      db
        .prepare(text)
        .values(...(params as never[]))
        .map((row) => map(row as Value[])),
    raw: (text: string) => db.query(text).all(),
  };
};

const INSERT_BOAT = insertInto(boats);
const INSERT_PORT = insertInto(ports);
const LIST_BOATS = query(build.select().from(boats));

describe("statements and queries from Drizzle", () => {
  test("[ST-19] an insert fills in defaults, and stores booleans as 0 and 1 and JSON as text", () => {
    const { run, raw } = openHarbour();
    run(
      INSERT_BOAT([
        { id: 1, name: "Ark", afloat: true, crew: ["noah"], length: 137.16 },
        { id: 2, name: "Wreck" },
      ]),
    );
    expect(raw("select * from boats")).toEqual([
      { id: 1, name: "Ark", afloat: 1, crew: '["noah"]', length: 137.16, home: null },
      { id: 2, name: "Wreck", afloat: 0, crew: "[]", length: null, home: null },
    ]);
  });

  test("[ST-19] rows are returned as inserted", () => {
    const { run, all } = openHarbour();
    const ark = { id: 1, name: "Ark", afloat: true, crew: ["noah", "é\0"], length: 1.5, home: null };
    run(INSERT_BOAT(ark));
    expect(all(LIST_BOATS())).toEqual([ark]);
  });

  test("[ST-19] a statement is plain data: one text, rows of values", () => {
    const update = statement<{ id: number; afloat: boolean }>(
      build
        .update(boats)
        .set({ afloat: sql.placeholder("afloat") as never })
        .where(eq(boats.id, sql.placeholder("id"))),
      { expect: 1 },
    )([
      { id: 1, afloat: true },
      { id: 2, afloat: false },
    ]);
    expect(update).toEqual({
      sql: 'update "boats" set "afloat" = ? where "boats"."id" = ?',
      rows: [
        [1, 1],
        [0, 2],
      ],
      touches: ["workspaces"],
      expect: 1,
    });
    expect(structuredClone(update)).toEqual(update);
  });

  test("[ST-19] a placeholder without a value is an error, null and undefined are null", () => {
    const find = query(
      build
        .select({ id: boats.id })
        .from(boats)
        .where(eq(boats.home, sql.placeholder("home"))),
    );
    expect(() => find({})).toThrow('no value for placeholder "home"');
    expect(find({ home: undefined }).params).toEqual([null]);
    expect(find({ home: null }).params).toEqual([null]);
  });

  test("[ST-19] a boolean outside a column is 0 or 1 too, and constants are bound as the column stores them", () => {
    const outsideColumn = query(build.select({ is: sql<number>`${sql.placeholder("is")}` }).from(boats));
    expect(outsideColumn({ is: true }).params).toEqual([1]);
    expect(query(build.select().from(boats).where(eq(boats.afloat, true)))().params).toEqual([1]);
  });

  test("[ST-19] an update touches only the columns it names, and each shape is compiled once", () => {
    const { run, all } = openHarbour();
    const change = updateBy(boats, boats.id);
    run(INSERT_BOAT({ id: 1, name: "Ark", length: 2, home: 3 }));
    expect(run(change(1, { afloat: true, length: null, home: undefined }))).toEqual([1]);
    expect(all(LIST_BOATS())[0]).toEqual({ id: 1, name: "Ark", afloat: true, crew: [], length: null, home: 3 });
    expect(change(1, { name: "A" }).sql).toBe(change(2, { name: "B" }).sql);
    expect(change(1, { name: "A" }, { expect: 1 }).expect).toBe(1);
    expect(() => change(1, {})).toThrow("empty update of boats");
  });

  test("[ST-19] a deletion removes the rows of its key", () => {
    const { run, all } = openHarbour();
    run(INSERT_BOAT([1, 2].map((id) => ({ id, name: "" }))));
    expect(run(deleteBy(boats, boats.id)(1))).toEqual([1]);
    expect(all(LIST_BOATS()).map((boat) => boat.id)).toEqual([2]);
  });

  test("[ST-19] a joined table is an object, or null without a match", () => {
    const { run, all } = openHarbour();
    run(INSERT_BOAT([1, 2, 3].map((id) => ({ id, name: `b${id}`, home: id }))));
    run(INSERT_PORT([{ id: 1, name: null, open: false, tags: ["deep"] }, { id: 2 }]));
    const joined = query(build.select().from(boats).leftJoin(ports, eq(ports.id, boats.home)).orderBy(boats.id));
    expect(all(joined()).map((row) => row.ports)).toEqual([
      { id: 1, name: null, open: false, tags: ["deep"] },
      { id: 2, name: null, open: null, tags: null },
      null,
    ]);
  });

  test("[ST-19] chosen fields, expressions and aliases are read in their own types", () => {
    const { run, all } = openHarbour();
    run(INSERT_BOAT({ id: 1, name: "Ark", afloat: true, crew: ["noah"] }));
    const chosen = query(
      build
        .select({
          boat: { name: boats.name, afloat: boats.afloat },
          crew: boats.crew,
          many: count(),
          yes: sql<boolean>`1`.mapWith(boats.afloat),
          loud: sql<string>`upper(${boats.name})`.as("loud"),
        })
        .from(boats),
    );
    expect(all(chosen())).toEqual([
      { boat: { name: "Ark", afloat: true }, crew: ["noah"], many: 1, yes: true, loud: "ARK" },
    ]);
  });

  test("[ST-19] a default that SQL would compute is refused on the first use of the statement", () => {
    const stamped = sqliteTable("stamped", { at: integer().default(sql`(unixepoch())`) });
    expect(() => insertInto(stamped)([{}])).toThrow("at: a default made by SQL is not supported");
  });
});
