// Which test files a change can reach: tests that import a changed file, over however many files in between, start it as a program, or
// name it. Used by `npm test -- --changed`.
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { importsOf, targetOf } from "../layers.ts";

/** What every test stands on: after a change of these nothing can be left out. */
const FOUNDATIONS = /^(package\.json|bun\.lock|tsconfig\.json|bunfig\.toml|test\/support\/(server|needs)\.ts)$/;
/** Tests that read the tree itself and not what they import. */
const ALWAYS = /^test\/(house\/|[\w-]+\.test\.ts$)/;

const git = (root: string, ...words: string[]): string[] => {
  const { stdout, success, stderr } = Bun.spawnSync(["git", ...words], { cwd: root });
  if (!success) throw new Error(`git ${words.join(" ")}: ${stderr.toString().trim()}`);
  return stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "");
};

/** The files that differ from where this branch has left `base`, committed or not, new ones included. Throws when git cannot tell. */
export const changedFiles = (root: string, base: string): string[] => {
  const from = git(root, "merge-base", "HEAD", base)[0]?.trim() ?? base;
  const changed = git(root, "diff", "--name-only", "-z", from);
  return [...new Set([...changed, ...git(root, "ls-files", "--others", "--exclude-standard", "-z")])].sort();
};

/** What a source file leads to: imports, and files of the tree that it names in quotes, such as programs that it starts. */
const leadsTo = (root: string, file: string, text: string): string[] => {
  const imported = importsOf(text, file.endsWith("x") ? "tsx" : "ts").map((path) => targetOf(file, path));
  const named = [...text.matchAll(/["'`]([\w./-]+\.(?:tsx?|mjs))["'`]/g)].flatMap(([, path = ""]) => [
    normalize(join(dirname(file), path)),
    normalize(path),
  ]);
  return [...imported, ...named].filter((path): path is string => path !== undefined && existsSync(join(root, path)));
};

/** The test files among `files` that `changed` can reach; `files` are the paths of all sources below `root`. */
export const reachedTests = (root: string, files: readonly string[], changed: readonly string[]): string[] => {
  const tests = files.filter((file) => file.endsWith(".test.ts"));
  if (changed.some((file) => FOUNDATIONS.test(file))) return tests;
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const usedBy = new Map<string, Set<string>>();
  for (const [file, text] of texts) {
    for (const target of leadsTo(root, file, text)) usedBy.set(target, (usedBy.get(target) ?? new Set()).add(file));
  }
  const reached = new Set<string>(changed);
  // A page or a text is used by anyone who names it.
  for (const path of changed.filter((file) => !/\.tsx?$/.test(file))) {
    for (const [file, text] of texts) if (text.includes(basename(path))) reached.add(file);
  }
  for (const file of reached) for (const user of usedBy.get(file) ?? []) reached.add(user);
  return tests.filter((file) => reached.has(file) || ALWAYS.test(file));
};
