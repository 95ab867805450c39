// Reads the rules of behavior: every RULES.md below test/ with the rows of its tables. Used by the tests that compare them with tests and documents.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const TESTS = fileURLToPath(new URL("..", import.meta.url));

/** The ids in the first column of the tables of a text. */
export const rulesIn = (markdown: string): string[] =>
  [...markdown.matchAll(/^\|\s*([A-Z]{2,4}-\d+)\s*\|/gm)].map(([, id = ""]) => id);

/** Each RULES.md by its path below test/, with its text. */
export const ruleFiles = (): { file: string; text: string }[] =>
  [...new Bun.Glob("**/RULES.md").scanSync({ cwd: TESTS })]
    .sort()
    .map((file) => ({ file, text: readFileSync(TESTS + file, "utf8") }));

/** Every rule with the file that states it. */
export const allRules = (): { id: string; file: string }[] =>
  ruleFiles().flatMap(({ file, text }) => rulesIn(text).map((id) => ({ id, file })));
