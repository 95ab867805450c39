// The rules (RULES.md of each area) and the titles of the tests are checked against each other.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { listAllRules, parseRules, readRuleFiles } from "./support/rules.ts";

const TEST_FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** Returns the IDs in brackets at the beginning of a test's title: `"[CF-1] ..."`, `"[CF-1][CF-2] ..."`. */
const parseCitedRules = (source: string): string[] =>
  [...source.matchAll(/["'`]((?:\[[A-Z]{2,4}-\d+\]\s*)+)/g)].flatMap(
    ([, ids = ""]) => ids.match(/[A-Z]{2,4}-\d+/g) ?? [],
  );

const rules = listAllRules();
const defined = rules.map(({ id }) => id);
const files = [...new Bun.Glob("**/{*.test,contract}.ts").scanSync({ cwd: TEST_FOLDER })];
const cited = files.flatMap((file) =>
  parseCitedRules(readFileSync(TEST_FOLDER + file, "utf8")).map((id) => ({ id, file })),
);

test("[RP-4] every rule is cited by a test", () => {
  const ids = new Set(cited.map(({ id }) => id));
  expect(defined.length).toBeGreaterThan(0);
  expect(rules.filter(({ id }) => !ids.has(id)).map(({ id, file }) => `${id} of ${file}`)).toEqual([]);
});

test("[RP-4] every cited rule exists, and none is defined twice", () => {
  const unknown = cited.filter(({ id }) => !defined.includes(id)).map(({ id, file }) => `${id} in ${file}`);
  expect([...new Set(unknown)].sort()).toEqual([]);
  expect(defined.filter((id, index) => defined.indexOf(id) !== index)).toEqual([]);
});

test("[RP-4] the rules of one prefix are in one file, and RULES.md lists every file with its prefixes", () => {
  const filesByPrefix = new Map<string, Set<string>>();
  for (const { id, file } of rules) {
    const prefix = id.split("-")[0] ?? "";
    filesByPrefix.set(prefix, (filesByPrefix.get(prefix) ?? new Set()).add(file));
  }
  expect([...filesByPrefix].filter(([, { size }]) => size > 1)).toEqual([]);

  const index = readRuleFiles().find(({ file }) => file === "RULES.md")?.text ?? "";
  const listed = [...index.matchAll(/^\| \[(\S+)\]\(\1\) \| (.*) \|$/gm)].flatMap(([, file = "", areas = ""]) =>
    [...areas.matchAll(/`([A-Z]+)`/g)].map(([, prefix]) => `${prefix} ${file}`),
  );
  const actual = [...filesByPrefix].flatMap(([prefix, files]) => [...files].map((file) => `${prefix} ${file}`));
  expect(listed.sort()).toEqual(actual.filter((line) => !line.endsWith(" RULES.md")).sort());
});

test("[RP-4] the parsers of rules and citations find every form", () => {
  expect(parseRules("| id | rule |\n|---|---|\n| AB-1 | x |\n|AB-12| see | AB-2 | |\ntext AB-3")).toEqual([
    "AB-1",
    "AB-12",
  ]);
  // Concatenated, so that this file does not cite a nonexistent rule.
  const titles = `test("[${"AB"}-1][AB-2] does", () => 1); // [AB-3]`;
  expect(parseCitedRules(titles)).toEqual(["AB-1", "AB-2"]);
});
