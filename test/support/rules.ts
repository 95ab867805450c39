// Reads the rules of behavior: the tables of every RULES.md in test/. Used by the tests that compare the rules with tests and documents.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TESTS = fileURLToPath(new URL("..", import.meta.url));

/** Returns the IDs in the first column of a text's tables. */
export const parseRules = (markdown: string): string[] =>
  [...markdown.matchAll(/^\|\s*([A-Z]{2,4}-\d+)\s*\|/gm)].map(([, id = ""]) => id);

/** Returns each RULES.md by its path in test/, with its text. */
export const readRuleFiles = (): { file: string; text: string }[] =>
  [...new Bun.Glob("**/RULES.md").scanSync({ cwd: TESTS })]
    .sort()
    .map((file) => ({ file, text: readFileSync(TESTS + file, "utf8") }));

/** Returns every rule with its file. */
export const listAllRules = (): { id: string; file: string }[] =>
  readRuleFiles().flatMap(({ file, text }) => parseRules(text).map((id) => ({ id, file })));
