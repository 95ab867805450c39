// Finds the test files that a change can affect: tests that import a changed file, directly or not, start it as a program, or name it. For
// `npm test -- --changed`.
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { findImports, resolveImport } from "../layers.ts";

/** Files that affect every test: if one of them changes, all tests run. */
const FOUNDATIONS =
  /^(package\.json|bun\.lock|tsconfig\.json|bunfig\.toml|test\/support\/(server|needs|default-timeout)\.ts)$/;
/** Tests that read the source tree rather than their imports. */
const ALWAYS = /^test\/(house\/|[\w-]+\.test\.ts$)/;

const git = (root: string, ...args: string[]): string[] => {
  const { stdout, success, stderr } = Bun.spawnSync(["git", ...args], { cwd: root });
  if (!success) throw new Error(`git ${args.join(" ")}: ${stderr.toString().trim()}`);
  return stdout
    .toString()
    .split("\0")
    .filter((path) => path !== "");
};

/** Returns the files that this branch has changed since it left `base`, including uncommitted and new files. Throws if git fails. */
export const listChangedFiles = (root: string, base: string): string[] => {
  const forkPoint = git(root, "merge-base", "HEAD", base)[0]?.trim() ?? base;
  const changed = git(root, "diff", "--name-only", "-z", forkPoint);
  return [...new Set([...changed, ...git(root, "ls-files", "--others", "--exclude-standard", "-z")])].sort();
};

/** Returns what a source file depends on: imports, and repository files that it names in quotes, such as programs that it starts. */
const findDependencies = (root: string, file: string, text: string): string[] => {
  const imported = findImports(text, file.endsWith("x") ? "tsx" : "ts").map((path) => resolveImport(file, path));
  const named = [...text.matchAll(/["'`]([\w./-]+\.(?:tsx?|mjs))["'`]/g)].flatMap(([, path = ""]) => [
    normalize(join(dirname(file), path)),
    normalize(path),
  ]);
  return [...imported, ...named].filter((path): path is string => path !== undefined && existsSync(join(root, path)));
};

/** Returns the test files among `files` that a change of `changed` can affect. `files`: the paths of all sources below `root`. */
export const findAffectedTests = (root: string, files: readonly string[], changed: readonly string[]): string[] => {
  const tests = files.filter((file) => file.endsWith(".test.ts"));
  if (changed.some((file) => FOUNDATIONS.test(file))) return tests;
  const texts = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const usedBy = new Map<string, Set<string>>();
  for (const [file, text] of texts) {
    for (const target of findDependencies(root, file, text))
      usedBy.set(target, (usedBy.get(target) ?? new Set()).add(file));
  }
  const affected = new Set<string>(changed);
  // A document is used by every file that names it.
  for (const path of changed.filter((file) => !/\.tsx?$/.test(file))) {
    for (const [file, text] of texts) if (text.includes(basename(path))) affected.add(file);
  }
  for (const file of affected) for (const user of usedBy.get(file) ?? []) affected.add(user);
  return tests.filter((file) => affected.has(file) || ALWAYS.test(file));
};
