// Describes the tables of a database, so that two databases can be compared.
import type { Database } from "bun:sqlite";

/** Returns whether a table is handwritten: virtual tables and their internal tables, which Drizzle does not support. */
const isHandwritten = (name: unknown): boolean => /^(message|title)_search(_|$)/.test(String(name));

/** Returns columns, keys and indexes of each table. The position of a column is ignored: `alter table` can only add at the end. */
export const describeSchema = (db: Database): unknown => {
  const names = db
    .query("select name from sqlite_schema where type = 'table' and name <> 'migrations'")
    .values()
    .flat()
    .filter((name) => !isHandwritten(name));
  const describeTable = (name: unknown) => ({
    columns: db
      .query(`select name, type, "notnull", dflt_value, pk from pragma_table_info('${name}') order by name`)
      .all(),
    references: db
      .query(`select "table", "from", "to", on_delete from pragma_foreign_key_list('${name}') order by 2`)
      .all(),
    indexes: db
      .query(
        `select trim(sql, char(10)) as sql from sqlite_schema where type = 'index' and tbl_name = '${name}' order by name`,
      )
      .all(),
  });
  return Object.fromEntries(names.sort().map((name) => [name, describeTable(name)]));
};
