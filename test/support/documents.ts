// Documentation pages: README, docs/ and pages next to the code. Used by the tests that run their code blocks and follow their links.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the text of a page by its path in the repository. */
export const readPage = (path: string): string => readFileSync(ROOT + path, "utf8");

/** Returns the paths of README and of the pages directly in docs/. */
export const listUserPages = (): string[] => [
  "README.md",
  ...[...new Bun.Glob("*.md").scanSync({ cwd: `${ROOT}docs` })].sort().map((name) => `docs/${name}`),
];

/** Returns the shell blocks directly below the mark `<!-- mark -->`. */
export const findMarkedBlocks = (markdown: string, mark: string): string[] =>
  [...markdown.matchAll(new RegExp(`^<!-- ${mark} -->\\n\`\`\`sh\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );

/** Returns how often the mark occurs, with or without a block below it. */
export const countMarks = (markdown: string, mark: string): number => markdown.split(`<!-- ${mark} -->`).length - 1;

/** Returns the first block of a language. */
export const findFirstBlock = (markdown: string, language: string): string =>
  new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(markdown)?.[1] ?? "";

/** Returns true if the repository has a file or folder with this path. */
export const pathExists = (path: string): boolean => existsSync(ROOT + path);
