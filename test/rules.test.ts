// test/RULES.md and the titles of the tests, checked against each other.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** The ids in the first column of the tables. */
const definedRules = (markdown: string): string[] =>
  [...markdown.matchAll(/^\|\s*([A-Z]{2,4}-\d+)\s*\|/gm)].map(([, id = ""]) => id);

/** The ids in brackets where a test's title begins: `"[CF-1] ..."`, `"[CF-1][CF-2] ..."`. */
const citedRules = (source: string): string[] =>
  [...source.matchAll(/["'`]((?:\[[A-Z]{2,4}-\d+\]\s*)+)/g)].flatMap(
    ([, ids = ""]) => ids.match(/[A-Z]{2,4}-\d+/g) ?? [],
  );

const defined = definedRules(readFileSync(`${HERE}RULES.md`, "utf8"));
const files = [...new Bun.Glob("**/{*.test,contract}.ts").scanSync({ cwd: HERE })];
const cited = files.flatMap((file) => citedRules(readFileSync(HERE + file, "utf8")).map((id) => ({ id, file })));

test("[RP-4] every rule is cited by a test", () => {
  const ids = new Set(cited.map(({ id }) => id));
  expect(defined.length).toBeGreaterThan(0);
  expect(defined.filter((id) => !ids.has(id))).toEqual([]);
});

test("[RP-4] every cited rule exists, and none is defined twice", () => {
  const unknown = cited.filter(({ id }) => !defined.includes(id)).map(({ id, file }) => `${id} in ${file}`);
  expect([...new Set(unknown)].sort()).toEqual([]);
  expect(defined.filter((id, index) => defined.indexOf(id) !== index)).toEqual([]);
});

test("[RP-4] the reading of both sides finds what it should", () => {
  expect(definedRules("| id | rule |\n|---|---|\n| AB-1 | x |\n|AB-12| see | AB-2 | |\ntext AB-3")).toEqual([
    "AB-1",
    "AB-12",
  ]);
  // Put together, so that this file does not cite what is no rule.
  const titles = `test("[${"AB"}-1][AB-2] does", () => 1); // [AB-3]`;
  expect(citedRules(titles)).toEqual(["AB-1", "AB-2"]);
});
