// Translates statements of SQLite to PostgreSQL. prepare.test.ts prepares the translations of all statements on a real server.
import { describe, expect, test } from "bun:test";
import { redactPassword, splitHosts } from "#db/pg/hosts.ts";
import { toPostgres } from "#db/pg/text.ts";

describe("a statement for PostgreSQL", () => {
  // biome-ignore format: a table of cases
  const cases: [string, string][] = [
    ["select ? from a where b = ?", "select $1 from a where b = $2"],
    ["select ?2, ?1, ?2", "select $2, $1, $2"],
    [`select '?', "a?" from t -- why?\nwhere x = ?`, `select '?', "a?" from t -- why?\nwhere x = $1`],
    ["select 'it''s ?' || ?", "select 'it''s ?' || $1"],
    [`insert into "a" ("x") values (?) on conflict ("a"."x", "a"."y") do nothing`, `insert into "a" ("x") values ($1) on conflict ("x", "y") do nothing`],
    ["insert or ignore into a values (?)", "insert into a values ($1) on conflict do nothing"],
    ["select 1 from a indexed by a_b where c", "select 1 from a where c"],
    ["select 1 from a cross join b x on a.i = x.i", "select 1 from a join b x on a.i = x.i"],
    ["select 1 limit -1", "select 1 limit all"],
    ["select json_object('a', 1)", "select json_build_object('a', 1)"],
    ["select 1 limit ? offset ?", "select 1 limit nullif($1::bigint, -1) offset $2"],
    ["delete from a where k between (?1 << 32) | ?2 and 9", "delete from a where k between ($1::bigint << 32) | $2::bigint and 9"],
    ["select 1 from (select 2) where true", "select 1 from (select 2) as subquery_0 where true"],
    ["select 1 from (select 2 from (select 3)) x", "select 1 from (select 2 from (select 3) as subquery_0) x"],
    ["select 1 from message_search where message_search match ?", "select 1 from message_search where words @@ fts_query($1)"],
    ["insert or replace into title_search (rowid, words) values (?, ?)", "insert into title_search (rowid, words) values ($1, to_tsvector('simple', $2)) on conflict (rowid) do update set words = excluded.words"],
  ];
  test.each(cases)("[PQ-1] %s", (sqlite, postgres) => {
    expect(toPostgres(sqlite).replace(/ subquery_1/g, " subquery_0")).toBe(postgres);
  });
});

describe("an address of PostgreSQL", () => {
  test("[PQ-2] may name several hosts", () => {
    expect(splitHosts("postgres://u:p@one:5432,two/db?sslmode=require")).toEqual([
      "postgres://u:p@one:5432/db?sslmode=require",
      "postgres://u:p@two/db?sslmode=require",
    ]);
    expect(splitHosts("postgresql://localhost/db")).toEqual(["postgresql://localhost/db"]);
    for (const invalid of ["", "mysql://x/y", "postgres://", "slipway.db"])
      expect(() => splitHosts(invalid)).toThrow(RangeError);
  });

  test("[PQ-2] is shown without its password", () => {
    expect(redactPassword("postgres://u:secret@h/db")).toBe("postgres://u:***@h/db");
    expect(redactPassword("postgres://u@h/db")).toBe("postgres://u@h/db");
  });
});
