// The app's table of calls is what the server has.
import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { fetchDocument, operationsOf } from "#test/fuzz/operations.ts";
import { startTestServer } from "#test/support/server.ts";

const TABLE = fileURLToPath(new URL("../../src/web/app/data/calls.ts", import.meta.url));

/** Names of parameters do not matter. */
const shapeOf = (method: string, path: string): string =>
  `${method.toUpperCase()} ${path.replace(/\/me(?=\/|$)|\/\{[^}]+\}|\/:[a-z_]+/g, "/{}")}`;

test("[WB-7] every call of the app is an operation of the OpenAPI document", async () => {
  await using server = await startTestServer();
  const known = new Set(operationsOf(await fetchDocument(server.url)).map(({ method, path }) => shapeOf(method, path)));
  const source = await Bun.file(TABLE).text();
  const calls = [...source.matchAll(/^ {2}"([A-Z]+) (\/[^"]*)"/gm)].map(([, method = "", path = ""]) =>
    shapeOf(method, `/api/v2${path}`),
  );
  expect(calls.length).toBeGreaterThan(20);
  expect(calls.filter((call) => !known.has(call))).toEqual([]);
}, 60_000);
