// The generated access pages match the tables.
import { expect, test } from "bun:test";
import { DOCS, operationDocs, roleDocs } from "./access-docs.ts";

test("[RO-3] src/api/ACCESS.md is generated from the tables; `bun run access` writes it", async () => {
  expect(await Bun.file(DOCS).text()).toBe(roleDocs());
});

test("[RO-3] the page of operations has the scope and the responses of each call", () => {
  const lines = operationDocs(new Map([["GET /api/v2/users/{user}", "user:read"]])).split("\n");
  const row = lines.find((line) => line.startsWith("| `GET /api/v2/users/{user}` |"));
  expect(row).toBe("| `GET /api/v2/users/{user}` | owner | user:read | 401 | 401 | 401 | 404 | 404 | 200 | 200 |");
});
