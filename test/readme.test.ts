// The files that the READMEs of the tests mention exist.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { listAllRules } from "./support/rules.ts";

const read = (name: string): string => readFileSync(join(import.meta.dir, name), "utf8");

test("[RP-9] every test that a README names exists and cites the listed rules, and every long check has a result", () => {
  const rules = new Set(listAllRules().map(({ id }) => id));
  const results = read("results/torture.md");
  const plan = read("crash/torture.ts");
  const [checks, security] = [read("CHECKS.md"), read("security/README.md")];
  const missing: string[] = [];
  for (const [, file = ""] of `${checks}${security}`.matchAll(/`([\w/.-]+\.ts)`/g)) {
    if (!existsSync(join(import.meta.dir, file)) && !existsSync(join(import.meta.dir, "..", file))) missing.push(file);
  }
  const citations = new Map<string, string>();
  for (const [, ids = "", tests = ""] of security.matchAll(/^\| [^|]+ \| ([A-Z]+-\d+[^|]*) \| ([^|]+) \|$/gm)) {
    for (const id of ids.split(", ")) citations.set(id.trim(), tests);
  }
  for (const [id, tests] of citations) {
    if (!rules.has(id)) missing.push(`rule ${id}`);
    const isCited = [...tests.matchAll(/`([\w/.-]+\.ts)`/g)].some(([, file = ""]) => read(file).includes(`[${id}]`));
    if (!isCited) missing.push(`${id} in ${tests}`);
  }
  const rows = [...checks.matchAll(/^\| (\d+) \| .* \| ([^|]+) \|$/gm)];
  expect(rows.map(([, number]) => Number(number))).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  for (const name of rows.flatMap(([, , longChecks = ""]) =>
    longChecks.trim() === "-" ? [] : longChecks.trim().split("; "),
  )) {
    if (!plan.includes(`name: "${name}"`)) missing.push(`the long check ${name} does not exist`);
    if (!results.includes(`| ${name} |`)) missing.push(`the long check ${name} has no result`);
  }
  expect(missing).toEqual([]);
});
