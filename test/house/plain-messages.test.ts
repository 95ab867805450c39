// Messages to actors are JSON: every test server in this process copies them as JSON (support/cluster/json-copy.ts). This file tests what
// the copy must detect.
import { expect, test } from "bun:test";
import { copyAsJson, findProblems, takeNonJsonValues } from "#test/support/cluster/json-copy.ts";

class Shape {}

test("[CP-34] finds values that JSON would lose, at any depth of a message", () => {
  const message = { a: [1, "b", null, { c: true }], left_out: undefined };
  expect(findProblems(message, "")).toEqual([]);
  expect(copyAsJson<unknown>(message)).toEqual({ a: [1, "b", null, { c: true }] });
  expect(copyAsJson(message).a).not.toBe(message.a);
  expect(copyAsJson(undefined)).toBeUndefined();
  const nonJson: unknown[] = [new Map(), new Set(), new Date(0), new Uint8Array(1), new Shape(), 1n, Number.NaN];
  for (const value of [...nonJson, Symbol("x"), () => 1]) expect(findProblems({ deep: [value] }, "")).toHaveLength(1);
  expect(findProblems([undefined], "")).toEqual(["[0]: undefined"]);
  expect(takeNonJsonValues()).toEqual([]);
  copyAsJson({ bytes: new Uint8Array(1) });
  expect(takeNonJsonValues()).toEqual([".bytes: Uint8Array of { bytes }"]);
});
