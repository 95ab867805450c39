// Finds test files that a run should have run but its report does not mention. Bun writes no case for a file that fails to load, even if
// the file had registered tests before. Pure; used by test/run.ts.
import type { TestCase } from "./junit.ts";

/** The title of the failed case for a file without any case. */
export const NOT_LOADED_TITLE = "(no test was reported: the file failed to load, or registers no test)";

/** The arguments of `bun test`: paths of files or folders (none means every file), and ignored files. */
export type Selection = { readonly paths: readonly string[]; readonly ignored: readonly string[] };

/**
 * Returns the files of `allFiles` that a run of `selection` must report, in order. A selected path that matches no file is returned
 * unchanged: the test was moved, and nothing would run in its place.
 */
export const listExpectedFiles = (allFiles: readonly string[], { paths, ignored }: Selection): string[] => {
  const included = allFiles.filter((file) => !ignored.includes(file));
  if (paths.length === 0) return included;
  const normalized = paths.map((path) => path.replace(/^\.\//, ""));
  const isIn = (file: string, path: string): boolean => file === path || file.startsWith(`${path}/`);
  const moved = normalized.filter((path) => !allFiles.some((file) => isIn(file, path)));
  return [...included.filter((file) => normalized.some((path) => isIn(file, path))), ...moved];
};

/** Returns the cases of a report, with a failed case for each expected file that has none. */
export const withUnreported = (cases: readonly TestCase[], expected: readonly string[]): TestCase[] => {
  const reported = new Set(cases.map(({ file }) => file));
  const missing = expected.filter((file) => !reported.has(file));
  return [
    ...cases,
    ...missing.map((file): TestCase => ({ file, title: NOT_LOADED_TITLE, outcome: "failed", seconds: 0 })),
  ];
};
