// Nearly valid arguments from models are repaired according to the tool's schema.
import { expect, test } from "bun:test";
import { parseArguments } from "#src/llm/arguments.ts";
import { repairArgs } from "#src/llm/repair-arguments.ts";

const text = { type: "string" };
const schema = {
  type: "object",
  additionalProperties: false,
  required: ["path"],
  properties: {
    path: text,
    limit: { type: "integer" },
    ratio: { type: "number" },
    all: { type: "boolean" },
    names: { type: "array", items: text },
    edits: {
      type: "array",
      items: {
        type: "object",
        required: ["search"],
        additionalProperties: false,
        properties: { search: text, n: { type: "integer" } },
      },
    },
    mode: {
      anyOf: [
        { type: "string", const: "a" },
        { type: "string", const: "b" },
      ],
    },
    either: { anyOf: [{ type: "integer" }, { type: "null" }] },
    any: {},
  },
};
const repair = (args: unknown) => repairArgs(schema, args);

test.each([
  [{ path: 7 }, { path: "7" }, ['"path" was taken as text.']],
  [{ path: "a", limit: "20", ratio: "0.5", all: "True" }, { path: "a", limit: 20, ratio: 0.5, all: true }, 3],
  [{ path: "a", names: '["x","y"]' }, { path: "a", names: ["x", "y"] }, ['"names" was taken as a list.']],
  [{ path: "a", names: "x" }, { path: "a", names: ["x"] }, 1],
  [{ path: "a", edits: '[{"search":1,"n":"2","more":true}]' }, { path: "a", edits: [{ search: "1", n: 2 }] }, 4],
  [{ path: "a", edits: { search: "x" } }, { path: "a", edits: [{ search: "x" }] }, 1],
  ['{"path":"a"}', { path: "a" }, ["The arguments were taken as an object."]],
  [{ path: "a", limit: null }, { path: "a" }, ['"limit" was null and was left out.']],
  [{ path: "a", either: "3" }, { path: "a", either: 3 }, 1],
  [{ path: "a", reason: "why" }, { path: "a" }, ['"reason" is unknown and was ignored.']],
] as [unknown, unknown, number | string[]][])("[TO-30] %j is repaired to %j", (args, expected, notes) => {
  const { args: repaired, notes: actualNotes } = repair(args);
  expect(repaired).toEqual(expected);
  if (typeof notes === "number") expect(actualNotes).toHaveLength(notes);
  else expect(actualNotes).toEqual(notes);
  // A repaired value needs no further repair.
  expect(repair(repaired).notes).toEqual([]);
});

test.each([
  { path: "a", limit: 3, names: ["x"], mode: "a", either: null, any: { x: 1 } },
  { path: "a", limit: "many" },
  { path: "a", limit: "1e3" },
  { path: "a", all: 1 },
  { path: { file: "a" } },
  { file_path: "a" },
  { path: "a", Path: "b" },
])("[TO-30] %j is not repaired", (args) => {
  expect(repair(args)).toEqual({ args, notes: [] });
});

test("[TO-30] truncated text, and anything but an object, is unchanged", () => {
  for (const args of [{ input: '{"path": "unfinished' }, null, [], "no JSON"]) {
    expect(repair(args)).toEqual({ args, notes: [] });
  }
  expect(repairArgs(undefined, { a: 1 })).toEqual({ args: { a: 1 }, notes: [] });
});

test("[TO-30] doubly encoded JSON is decoded twice, and plain text is not", () => {
  expect(parseArguments(JSON.stringify(JSON.stringify({ path: "a" })))).toEqual({ path: "a" });
  expect(parseArguments('"path"')).toBe("path");
});
