// The search language of `q`, and how it handles arbitrary input.

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { toRfc3339 } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { SearchQuery } from "#base/query.ts";

const listProblems = (query: SearchQuery): string[] => {
  try {
    query.requireValid("Invalid search query.");
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    expect(error.kind).toBe("invalid");
    return error.validations.map(({ field, detail }) => `${field}: ${detail}`);
  }
};

describe("splitting", () => {
  test("[QG-1] words are lowercased and joined into one free text", () => {
    const query = new SearchQuery('  Foo   "Bar  Baz" qux ');
    expect(query.free).toBe("foo bar  baz qux");
    expect(listProblems(query)).toEqual([]);
  });

  test("[QG-2] a value may be quoted and then contain spaces and colons", () => {
    const query = new SearchQuery('name:"My Box: one" owner:ME rest');
    expect(query.text("name")).toBe("my box: one");
    expect(query.text("owner")).toBe("me");
    expect(query.free).toBe("rest");
    expect(listProblems(query)).toEqual([]);
  });

  test("[QG-2] a colon inside quotes does not create a term", () => {
    expect(new SearchQuery('"a:b" c').free).toBe("a:b c");
  });

  test.each([
    [":x", "q"],
    ["x:", "q"],
    ["a:b:c", "a"],
    ['name:"open', "q"],
  ])("[QG-3] %s is refused", (text, field) => {
    const query = new SearchQuery(text);
    query.text("a");
    query.text("name");
    expect(listProblems(query)[0]).toStartWith(`${field}: `);
  });

  test("[QG-4] the free text is a name, or owner and name; more slashes are refused", () => {
    expect(new SearchQuery("box").ownerAndName()).toEqual({ name: "box" });
    expect(new SearchQuery("ann/box").ownerAndName()).toEqual({ owner: "ann", name: "box" });
    expect(new SearchQuery("ann/").ownerAndName()).toEqual({ owner: "ann" });
    expect(new SearchQuery("").ownerAndName()).toEqual({});
    const query = new SearchQuery("a/b/c");
    query.ownerAndName();
    expect(listProblems(query)).toHaveLength(1);
  });
});

describe("keys", () => {
  test("[QG-5] list keys accept commas and repetition; single keys refuse a second value", () => {
    const query = new SearchQuery("status:active,dormant status:suspended name:a name:b");
    expect(query.choices("status", ["active", "dormant", "suspended"])).toEqual(["active", "dormant", "suspended"]);
    query.text("name");
    expect(listProblems(query)).toEqual(["name: This key can be given only once."]);
    const several = new SearchQuery("status:active,dormant");
    several.choice("status", ["active", "dormant"]);
    expect(listProblems(several)).toEqual(["status: This key takes one value."]);
  });

  test("[QG-6] unknown keys are named, each once, with the known ones", () => {
    const query = new SearchQuery("nmae:a nmae:b");
    query.text("name");
    query.flag("dormant");
    expect(listProblems(query)).toEqual(["nmae: This key is unknown. Known keys are name, dormant."]);
  });

  test("[QG-7] a value of the wrong kind is refused with the allowed values", () => {
    const query = new SearchQuery("dormant:perhaps since:yesterday id:12 status:gone");
    query.flag("dormant");
    query.time("since");
    query.uuids("id");
    query.choice("status", ["active", "dormant"]);
    expect(listProblems(query)).toEqual([
      'dormant: "perhaps" is not true or false.',
      'since: "yesterday" is not a time such as 2026-01-31T12:00:00Z.',
      'id: "12" is not a UUID.',
      'status: "gone" is not one of active, dormant.',
    ]);
  });

  test.each([
    ["1", true],
    ["T", true],
    ["True", true],
    ["0", false],
    ["f", false],
    ["FALSE", false],
  ])("[QG-7] flag %s is %p", (text, value) => {
    expect(new SearchQuery(`x:${text}`).flag("x")).toBe(value);
  });

  test("[QG-7] times are parsed unquoted and quoted, with fractions and offsets", () => {
    const query = new SearchQuery('a:2026-01-31T12:00:00Z b:"2026-01-31T14:00:00.5+02:00"');
    expect(query.time("a")).toBe(Date.UTC(2026, 0, 31, 12));
    expect(query.time("b")).toBe(Date.UTC(2026, 0, 31, 12, 0, 0, 500));
    expect(listProblems(query)).toEqual([]);
  });
});

test("[QG-8] any input gives a result or a 400, never anything else, in time proportional to its length", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const query = new SearchQuery(text);
      query.text("name");
      query.ownerAndName();
      listProblems(query);
    }),
  );
  fc.assert(
    fc.property(fc.stringMatching(/^[a-c]{1,8}$/), fc.stringMatching(/^[a-z :,/]{0,20}$/), (key, value) => {
      const query = new SearchQuery(`${key}:"${value}"`);
      expect(query.text(key)).toBe(value === "" ? undefined : value);
    }),
  );
  new SearchQuery('a:"'.repeat(30_000)).text("a");
});

test("[HT-28] a time beyond the calendar is shown as its end, so that one row does not make a list unreadable", () => {
  expect([9e15, Number.MAX_SAFE_INTEGER].map(toRfc3339)).toEqual(Array(2).fill("9999-12-31T23:59:59.999Z"));
  expect(toRfc3339(-1e17)).toBe("0001-01-01T00:00:00.000Z");
});
