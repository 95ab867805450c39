// Compiles Drizzle builders to plain values: statements (writes) and queries (reads) with placeholders are compiled once and then only
// bound. The result is data, so the same batch can run here, on a Worker or on another machine.
import {
  and,
  Column,
  eq,
  getTableColumns,
  getTableName,
  is,
  Param,
  Placeholder,
  SQL,
  sql,
  type Table,
} from "drizzle-orm";
import { type AnySQLiteColumn, SQLiteSyncDialect, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { listTouches, type Touch } from "../schema/cache-dependencies.ts";
import type { Alone } from "./cross-row-guards.ts";

/** Values that SQLite stores. Booleans are 0 and 1, times milliseconds, JSON a string. */
export type Value = string | number | bigint | null | Uint8Array;

/** Reports that readers compute in code (db/reports) instead of with one statement. */
export type ReportName = "templates" | "user_activity" | "user_latency" | "daus" | "audit";

/**
 * A write: the SQL runs once per row of parameters. With `expect`, every run must change exactly that many rows, otherwise the whole batch
 * is rejected as `stale`.
 */
export type Statement = {
  readonly sql: string;
  readonly rows: readonly (readonly Value[])[];
  readonly expect?: number;
  /** The kinds of cached answers that the write may invalidate; absent: all kinds. */
  readonly touches?: readonly Touch[];
  /** Only one node at a time writes statements with this name (cross-row-guards.ts). */
  readonly alone?: Alone;
};

/** A read: SQL, its parameters, and a function that converts a row of values to an object. */
export type Query<T> = {
  readonly sql: string;
  readonly params: readonly Value[];
  readonly map: (row: Value[]) => T;
  /**
   * For `scan` only: a report that a reader computes from many rows (db/reports/usage/reports.ts, db/reports/audit/find.ts), instead of the
   * SQL.
   */
  readonly report?: ReportName;
};

/** Builds SQL and never runs it: the callback is unreachable because nothing here is awaited. */
export const build = drizzle(async () => ({ rows: [] }));

/** The condition that the column equals the parameter of its name: `.where(eqParam(agents.id))` takes {id}. */
export const eqParam = (column: AnySQLiteColumn): SQL => eq(column, sql.placeholder(column.name));

/**
 * The condition that the column equals the parameter of its name, or that the parameter is null. The cast gives null a type in PostgreSQL.
 */
export const eqParamOrAll = (column: AnySQLiteColumn): SQL =>
  sql`(cast(${sql.placeholder(column.name)} as text) is null or ${column} = ${sql.placeholder(column.name)})`;

type Compilable = { toSQL(): { sql: string; params: unknown[] } };
/** Drizzle's configuration of an insert, update or delete. */
type WriteBuilder = Compilable & { readonly config: { readonly table: SQLiteTable } };
type Bindings = Record<string, unknown>;

const makeEncoders = (params: unknown[]): ((values: Bindings) => Value)[] =>
  params.map((param) => {
    if (is(param, Placeholder)) return (values) => toBoundValue(values, param.name);
    if (is(param, Param) && is(param.value, Placeholder)) {
      const { name } = param.value;
      return (values) => {
        const value = toBoundValue(values, name);
        return value === null ? null : (param.encoder.mapToDriverValue(value) as Value);
      };
    }
    return () => param as Value;
  });

/** Compiles on first use, because a start needs few of the program's hundreds of queries (saves 45 of 300 ms, test/bench). */
const compileLazily = <T extends { readonly text: string }>(make: () => T, alone?: Alone): (() => T) => {
  let created: T | undefined;
  const compileOnce = (): T => {
    created ??= make();
    return created;
  };
  compiledTexts.push({ text: () => compileOnce().text, alone });
  return compileOnce;
};

/** The SQL texts of all statements and queries of the program, for tests that check each of them. */
export const compiledTexts: { readonly text: () => string; readonly alone: Alone | undefined }[] = [];

const toBoundValue = (values: Bindings, name: string): Value => {
  if (!(name in values)) throw new Error(`no value for placeholder "${name}"`);
  const value = values[name] ?? null;
  return typeof value === "boolean" ? Number(value) : (value as Value);
};

/**
 * Compiles a write with placeholders. Call the result with one set of values, or with an array of them to run the same SQL many times in
 * the batch.
 */
export const statement = <V extends Bindings>(
  builder: Compilable,
  options: { expect?: number; alone?: Alone; touches?: readonly Touch[] } = {},
): ((values: V | readonly V[]) => Statement) => {
  const compiled = compileLazily(() => {
    const { sql: text, params } = builder.toSQL();
    const table = (builder as Partial<WriteBuilder>).config?.table;
    return { text, encoders: makeEncoders(params), touches: table ? { touches: listTouches(table) } : {} };
  }, options.alone);
  return (values) => {
    const { text, encoders, touches } = compiled();
    return {
      sql: text,
      rows: (Array.isArray(values) ? values : [values]).map((one) => encoders.map((encode) => encode(one))),
      ...touches,
      ...options,
    };
  };
};

type Columns = Record<string, Column>;

/** Compiles the insert of a row. Omitted columns get their default, or null. */
export const insertInto = <T extends SQLiteTable>(
  table: T,
  options: { alone?: Alone } = {},
): ((rows: T["$inferInsert"] | readonly T["$inferInsert"][]) => Statement) => {
  const compiled = compileLazily(() => compileInsert(table), options.alone);
  return (rows) => {
    const { text, encoders } = compiled();
    return {
      sql: text,
      rows: (Array.isArray(rows) ? rows : [rows]).map((row) => encoders.map((encode) => encode(row as Bindings))),
      touches: listTouches(table),
      ...options,
    };
  };
};

const compileInsert = <T extends SQLiteTable>(table: T): { text: string; encoders: ((row: Bindings) => Value)[] } => {
  const columns = getTableColumns(table as Table) as Columns;
  const names = Object.keys(columns);
  const placeholders = Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]));
  const text = build
    .insert(table)
    .values(placeholders as T["$inferInsert"])
    .toSQL().sql;
  const encoders = names.map((name) => {
    const column = columns[name] as Column;
    if (is(column.default, SQL)) throw new Error(`${column.name}: a default made by SQL is not supported`);
    const fallback = column.default ?? null;
    return (row: Bindings): Value => {
      const binding = row[name];
      const value = binding === undefined ? fallback : binding;
      return value === null ? null : (column.mapToDriverValue(value) as Value);
    };
  });
  return { text, encoders };
};

/** Compiles the update of some columns of the row with a key. A missing row rejects the batch as `stale`. */
export const updateBy = <T extends SQLiteTable>(
  table: T,
  key: AnySQLiteColumn,
): ((id: string | number, patch: Partial<T["$inferInsert"]>, options?: { expect?: number }) => Statement) => {
  const boundByShape = new Map<string, (values: Bindings) => Statement>();
  return (id, patch, options = {}) => {
    const entries = Object.entries(patch).filter(([, value]) => value !== undefined);
    if (entries.length === 0) throw new Error(`empty update of ${getTableName(table)}`);
    const shape = entries.map(([name]) => name).join(",");
    let bind = boundByShape.get(shape);
    if (!bind) {
      const set = Object.fromEntries(entries.map(([name]) => [name, sql.placeholder(`set_${name}`)]));
      bind = statement(
        build
          .update(table)
          .set(set as never)
          .where(eq(key, sql.placeholder("key"))),
      );
      boundByShape.set(shape, bind);
    }
    const values: Bindings = { key: id };
    for (const [name, value] of entries) values[`set_${name}`] = value;
    return { ...bind(values), ...options };
  };
};

/** Compiles the deletion of the rows with a key. */
export const deleteBy = <T extends SQLiteTable>(
  table: T,
  key: AnySQLiteColumn,
): ((id: string | number) => Statement) => {
  const bind = statement<{ key: string | number }>(build.delete(table).where(eq(key, sql.placeholder("key"))));
  return (id) => bind({ key: id });
};

/** Drizzle's configuration of a select. `getSelectedFields` is not used, because its proxy rejects expressions without an alias. */
type SelectBuilder = Compilable & { readonly config: { readonly fields: Record<string, unknown> } };
/** The row type of a Drizzle select. */
export type RowOf<B> = Awaited<B> extends readonly (infer R)[] ? R : never;

/** The row type of a compiled query. */
export type RowOfQuery<Q> = Q extends (...values: never[]) => Query<infer R> ? R : never;

const compileSelect = <B extends PromiseLike<unknown>>(builder: B) => {
  const select = builder as unknown as SelectBuilder;
  const { sql: text, params } = select.toSQL();
  return { text, encoders: makeEncoders(params), map: makeMapper<RowOf<B>>(select.config.fields) };
};

/**
 * Compiles a select with placeholders. The result is a function that binds values. Fields are flat or one level deep (joined tables). Use
 * this only for constants of a module, because the compiled query is kept as long as the process runs.
 */
export const query = <B extends PromiseLike<unknown>>(builder: B): ((values?: Bindings) => Query<RowOf<B>>) => {
  const compiled = compileLazily(() => compileSelect(builder));
  return (values = {}) => {
    const { text, encoders, map } = compiled();
    return { sql: text, params: encoders.map((encode) => encode(values)), map };
  };
};

/** Compiles a select for one use, for queries whose text depends on the request. */
export const queryNow = <B extends PromiseLike<unknown>>(builder: B): Query<RowOf<B>> => {
  const { text, encoders, map } = compileSelect(builder);
  return { sql: text, params: encoders.map((encode) => encode({})), map };
};

const dialect = new SQLiteSyncDialect();

/** Compiles a query of one column for one use, for SQL that the builder cannot express. */
export const textNow = <T extends Value>(text: SQL): Query<T> => {
  const { sql: compiled, params } = dialect.sqlToQuery(text);
  return { sql: compiled, params: params as Value[], map: ([value]) => value as T };
};

/**
 * Finds whole rows by the values of these columns, which are parameters with the columns' names: `findBy(agents, agents.id)` takes {id}.
 */
export const findBy = <T extends SQLiteTable>(
  table: T,
  ...columns: AnySQLiteColumn[]
): ((values?: Bindings) => Query<T["$inferSelect"]>) =>
  query(
    build
      .select()
      .from(table as SQLiteTable)
      .where(and(...columns.map(eqParam))),
  );

type Decode = ((value: unknown) => unknown) | undefined;

const findDecoder = (field: unknown): Decode => {
  if (is(field, Column)) {
    const isPlain = ["SQLiteText", "SQLiteInteger", "SQLiteReal"].includes(field.columnType);
    return isPlain ? undefined : (value) => field.mapFromDriverValue(value);
  }
  if (is(field, SQL)) {
    const { decoder } = field as unknown as { decoder: { mapFromDriverValue(value: unknown): unknown } };
    return (value) => decoder.mapFromDriverValue(value);
  }
  const aliased = (field as { sql?: unknown }).sql;
  return aliased ? findDecoder(aliased) : undefined;
};

const makeMapper = <T>(fields: Record<string, unknown>): ((row: Value[]) => T) => {
  const readers: { group?: string; name: string; decode: Decode }[] = [];
  for (const [name, field] of Object.entries(fields)) {
    const isLeaf = is(field, Column) || is(field, SQL) || is(field, SQL.Aliased);
    if (isLeaf) readers.push({ name, decode: findDecoder(field) });
    else {
      const columns = getColumns(field);
      for (const [inner, column] of Object.entries(columns))
        readers.push({ group: name, name: inner, decode: findDecoder(column) });
    }
  }
  const groups = [...new Set(readers.flatMap(({ group }) => (group ? [group] : [])))];
  return (row) => {
    const result: Record<string, unknown> = {};
    for (const group of groups) result[group] = null;
    for (let i = 0; i < readers.length; i++) {
      const reader = readers[i] as (typeof readers)[number];
      const raw = row[i] ?? null;
      const value = raw === null || !reader.decode ? raw : reader.decode(raw);
      if (!reader.group) result[reader.name] = value;
      else if (result[reader.group] !== null) (result[reader.group] as Bindings)[reader.name] = value;
      else if (value !== null) result[reader.group] = { ...toNullGroup(readers, reader.group), [reader.name]: value };
    }
    return result as T;
  };
};

const toNullGroup = (readers: { group?: string; name: string }[], group: string): Bindings =>
  Object.fromEntries(readers.filter((reader) => reader.group === group).map(({ name }) => [name, null]));

const getColumns = (field: unknown): Record<string, unknown> =>
  is(field, Column)
    ? {}
    : "getSQL" in (field as object)
      ? getTableColumns(field as Table)
      : (field as Record<string, unknown>);
