// The page of operations that `bun run access` writes.
import { expect, test } from "bun:test";
import { operationDocs } from "./access-docs.ts";

test("[RO-3] the page of operations has the scope and the responses of each call", () => {
  const lines = operationDocs(new Map([["GET /api/v2/users/{user}", "user:read"]])).split("\n");
  const row = lines.find((line) => line.startsWith("| `GET /api/v2/users/{user}` |"));
  expect(row).toBe("| `GET /api/v2/users/{user}` | owner | user:read | 401 | 401 | 401 | 404 | 404 | 200 | 200 |");
});
