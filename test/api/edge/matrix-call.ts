// Calls an operation as its row of the matrix describes, with the world's objects in path, query and body. Used by matrix.test.ts and by
// the canary test.
import { test } from "bun:test";
import type { Access } from "#src/api/http/operation.ts";
import { Client } from "#src/client.ts";
import { fillPath, type Operation } from "#test/fuzz/operations.ts";
import { createExampleValue } from "#test/fuzz/values.ts";
import { type SingleServerReason, testSingleServer } from "#test/support/one-server.ts";
import { type DeclaredRoute, listAudited, readDeclaredAccess, readExamples, readRoutes } from "../declared-routes.ts";
import { type Row, STATUSES, TABLE, withStatus } from "./matrix-table.ts";
import type { MatrixWorld, TestObjects } from "./matrix-world.ts";

/** Empty for the compiled binary: the routes can only be read from inside the process. */
const ROUTES: readonly DeclaredRoute[] = process.env.SLIPWAY_TEST_BINARY ? [] : await readRoutes();
const DECLARED = readDeclaredAccess(ROUTES);
const EXAMPLES = readExamples(ROUTES);

/** The operations that declare what they change. */
export const DECLARED_AUDITS = listAudited(ROUTES);

/** The operations with known access. */
export const OPERATION_NAMES: readonly string[] = [...new Set([...Object.keys(TABLE), ...DECLARED.keys()])];

export type CompleteRow = Row & {
  readonly statuses: string;
  readonly access: Access | undefined;
  /** The declared status of a success. */
  readonly success: number;
};

/** Returns the row of an operation, from its declaration and the table: the status for each caller, and what the call sends. */
export const getRow = (name: string): CompleteRow => {
  const tableRow = TABLE[name] ?? {};
  const row = typeof tableRow === "string" ? { statuses: tableRow } : tableRow;
  const declared = DECLARED.get(name);
  const { statuses = declared && withStatus(STATUSES[declared.access], row.answers ?? declared.success) } = row;
  return {
    body: EXAMPLES.get(name),
    ...row,
    statuses: statuses ?? "",
    access: declared?.access,
    success: declared?.success ?? 200,
  };
};

const ATTACHMENT = { "Content-Disposition": 'attachment; filename="hello.txt"' };

/** Returns the raw response. `bodyOverrides` replace members of the row's body. */
export const callAs = (
  { server }: Pick<MatrixWorld, "server">,
  operation: Operation,
  row: Row,
  token: string | undefined,
  things: TestObjects,
  bodyOverrides: object = {},
  extraHeaders: Readonly<Record<string, string>> = {},
): Promise<Response> => {
  const required = operation.parameters
    .filter((parameter) => parameter.in === "query" && parameter.required)
    .map(({ name, schema }) => [name, String(createExampleValue(schema))] as const);
  const path = fillPath(
    operation,
    { ...things, ...fillIn(row.path ?? {}, things) },
    { ...Object.fromEntries(required), ...fillIn(row.query ?? {}, things) },
  );
  const json = buildBody(operation, row, things);
  const [body, headers] =
    row.contentType === undefined
      ? [json && { ...(json as object), ...bodyOverrides }, undefined]
      : [
          row.contentType.startsWith("text/") ? "hello" : new Uint8Array(512),
          { "Content-Type": row.contentType, ...ATTACHMENT },
        ];
  return new Client(server.url, token).fetch(operation.method, path, body, {
    headers: { ...headers, ...extraHeaders },
  });
};

/** Returns the row's body with the world's objects filled in, or without one what the schema requires. */
const buildBody = ({ body }: Operation, row: Row, things: TestObjects): unknown => {
  if (row.body !== undefined) return fillIn(row.body, things);
  if (!body) return undefined;
  const { properties = {}, required = [] } = body;
  const requiredProperties = Object.fromEntries(Object.entries(properties).filter(([name]) => required.includes(name)));
  return createExampleValue({ ...body, properties: requiredProperties });
};

/** Returns the value with `{name}` in its texts replaced by the world's object of that name. */
const fillIn = <T>(value: T, things: TestObjects): T =>
  JSON.parse(
    JSON.stringify(value).replace(/\{(\w+)\}/g, (placeholder, name: string) => things[name] ?? placeholder),
  ) as T;

// A cluster has no built-in template `local`, and PostgreSQL has its own backups.
const BY_NAME = "GET /api/v2/organizations/{organization}/templates/{name}";

const SINGLE_SERVER_ONLY: Readonly<Record<string, SingleServerReason>> = {
  "POST /api/v2/deployment/backups": "sqlite",
  [BY_NAME]: "local",
  [`${BY_NAME}/versions/{version}`]: "local",
};

/** Returns the `test` function for an operation's success. */
export const chooseTest = (name: string): typeof test => {
  const reason = SINGLE_SERVER_ONLY[name];
  return reason ? testSingleServer(reason) : test;
};
