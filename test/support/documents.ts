// The pages for people: README, docs/ and what lies alongside the code. Used by the tests that run their blocks and follow their links.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The text of a page by its path in the repository. */
export const page = (path: string): string => readFileSync(ROOT + path, "utf8");

/** README and every page of docs/, by their paths in the repository. */
export const userPages = (): string[] => [
  "README.md",
  ...[...new Bun.Glob("*.md").scanSync({ cwd: `${ROOT}docs` })].sort().map((name) => `docs/${name}`),
];

/** The shell blocks of a page that stand right below the mark `<!-- mark -->`. */
export const markedBlocks = (markdown: string, mark: string): string[] =>
  [...markdown.matchAll(new RegExp(`^<!-- ${mark} -->\\n\`\`\`sh\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );

/** How often a page has the mark, whatever stands below it. */
export const markCount = (markdown: string, mark: string): number => markdown.split(`<!-- ${mark} -->`).length - 1;

/** The first block of a language on a page. */
export const firstBlock = (markdown: string, language: string): string =>
  new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(markdown)?.[1] ?? "";

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
export const namedBlock = (markdown: string, name: string): string | undefined =>
  markdown.split(new RegExp(`<!-- /?${name} -->\n`))[1]?.trim();

/** True when a file or folder of the repository has this path. */
export const isThere = (path: string): boolean => existsSync(ROOT + path);
