// The fuzzer's check of values against schemas detects mismatches.
import { expect, test } from "bun:test";
import { findMismatch } from "./conforms.ts";
import type { Schema } from "./operations.ts";

const uuid = { type: "string", format: "uuid" };
const row: Schema = {
  type: "object",
  required: ["id"],
  properties: {
    id: uuid,
    at: { type: "string", format: "date-time", nullable: true },
    n: { type: "integer", minimum: 1 },
  },
};
const strict: Schema = { ...row, additionalProperties: false };
const ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

test.each<[Schema, unknown, string | undefined]>([
  [row, { id: ID, at: null, n: 1, more: 1 }, undefined],
  [strict, { id: ID, more: 1 }, "it.more is not allowed"],
  [row, { at: null }, "it.id is missing"],
  [row, { id: `urn:uuid:${ID}` }, "it.id is not a UUID"],
  [row, { id: ID, at: "2030-01-31" }, "it.at is not a time"],
  [row, { id: ID, n: 1.5 }, "it.n is not a whole number"],
  [row, { id: ID, n: 0 }, "it.n is out of bounds"],
  [row, { id: ID, n: null }, "it.n is not a number"],
  [row, [], "it is not an object"],
  [{ type: "array", items: row, maxItems: 1 }, [{ id: ID }, { id: ID }], "it has 2 items"],
  [{ type: "array", items: row }, [{ id: ID }, { id: 7 }], "it.1.id is not a string"],
  [{ type: "object", additionalProperties: uuid }, { a: ID, b: "" }, "it.b is not a UUID"],
  [{ anyOf: [uuid, row] }, { id: "" }, "it is not a string"],
  [{ anyOf: [uuid, row] }, { id: ID }, undefined],
  [{ type: "string", enum: ["a", "b"], nullable: true }, "c", "it is not one of a,b"],
  [{ type: "string", enum: ["a", "b"], nullable: true }, null, undefined],
  [{ type: "string", maxLength: 2, pattern: "^a" }, "abc", "it has 3 characters"],
  [{ type: "string", pattern: "^a" }, "b", "it does not match ^a"],
  [{}, { anything: [null] }, undefined],
])("[FZ-4] %j and %j", (schema, value, mismatch) => {
  expect(findMismatch(schema, value)).toBe(mismatch as string);
});
