// One call of an operation as a row of the matrix describes it: path, query and body filled with the town's things. Used by matrix.test.ts
// and by the test of canaries.
import { test } from "bun:test";
import type { Access } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { type Operation, pathWith } from "#test/fuzz/operations.ts";
import { example } from "#test/fuzz/values.ts";
import { type OfOneServer, testOfOne } from "#test/support/one-server.ts";
import { type DeclaredRoute, declaredAccess, listAudited, readRoutes } from "../declared-routes.ts";
import { as, type Row, STATUSES, TABLE } from "./matrix-table.ts";
import type { Things, Town } from "./matrix-world.ts";

/** None against the compiled binary: the matrix is asked from inside only. */
const ROUTES: readonly DeclaredRoute[] = process.env.SLIPWAY_TEST_BINARY ? [] : await readRoutes();
const DECLARED = declaredAccess(ROUTES);

/** The operations that declare what they change. */
export const DECLARED_AUDITS = listAudited(ROUTES);

/** The operations of which it is known who may. */
export const NAMES: readonly string[] = [...new Set([...Object.keys(TABLE), ...DECLARED.keys()])];

export type WholeRow = Row & { readonly is: string; readonly access: Access | undefined };

/** Returns the row of an operation: who gets what, and what its call sends; an empty one when none exists. */
export const rowOf = (name: string): WholeRow => {
  const given = TABLE[name] ?? {};
  const row = typeof given === "string" ? { is: given } : given;
  const declared = DECLARED.get(name);
  const { is = declared && as(STATUSES[declared.access], row.answers ?? declared.success) } = row;
  return { ...row, is: is ?? "", access: declared?.access };
};

const NAMED = { "Content-Disposition": 'attachment; filename="hello.txt"' };

/** The bare answer. Members of `more` are put into the body, over what the row has there; `also` are more headers. */
export const callAs = (
  { server }: Pick<Town, "server">,
  operation: Operation,
  row: Row,
  token: string | undefined,
  things: Things,
  more: object = {},
  also: Readonly<Record<string, string>> = {},
): Promise<Response> => {
  const required = operation.parameters
    .filter((one) => one.in === "query" && one.required)
    .map(({ name, schema }) => [name, String(example(schema))] as const);
  const path = pathWith(
    operation,
    { ...things, ...filled(row.path ?? {}, things) },
    { ...Object.fromEntries(required), ...filled(row.query ?? {}, things) },
  );
  const json = bodyOf(operation, row, things);
  const [body, headers] =
    row.sends === undefined
      ? [json && { ...(json as object), ...more }, undefined]
      : [row.sends.startsWith("text/") ? "hello" : new Uint8Array(512), { "Content-Type": row.sends, ...NAMED }];
  return new Client(server.url, token).fetch(operation.method, path, body, { headers: { ...headers, ...also } });
};

/** The row's body with the town's things in it, or an example of what the schema requires. */
const bodyOf = ({ body }: Operation, row: Row, things: Things): unknown => {
  if (row.body !== undefined) return filled(row.body, things);
  if (!body) return undefined;
  const { properties = {}, required = [] } = body;
  const wanted = Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)));
  return example({ ...body, properties: wanted });
};

/** The same value with `{name}` in its texts replaced by the town's thing of that name. */
const filled = <T>(value: T, things: Things): T =>
  JSON.parse(JSON.stringify(value).replace(/\{(\w+)\}/g, (whole, name: string) => things[name] ?? whole)) as T;

// Nodes that are all active have no ready template `local`, and PostgreSQL is backed up in its own way.
const BY_NAME = "GET /api/v2/organizations/{organization}/templates/{name}";

const OF_ONE: Readonly<Record<string, OfOneServer>> = {
  "POST /api/v2/deployment/backups": "sqlite",
  [BY_NAME]: "local",
  [`${BY_NAME}/versions/{version}`]: "local",
};

/** `test` for what an operation answers to those who may. */
export const testOf = (name: string): typeof test => {
  const why = OF_ONE[name];
  return why ? testOfOne(why) : test;
};
