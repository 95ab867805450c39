// Folders stay easy to scan: they have at most 45 files, unless there is a reason for more.
import { expect, test } from "bun:test";
import { dirname } from "node:path";
import { pathExists, ROOT } from "#test/support/documents.ts";

const MAX_ENTRIES = 45;

/** Larger folders, with the reason. */
const LARGER: Readonly<Record<string, string>> = {
  "db/schema": "one file for each noun that has tables",
  "test/browser": "each story has two files: the test, and the program that runs in the browser",
  "test/api/workspaces": "workspaces have the most operations, with a file for each story",
  "src/web/app/pages/chat": "the parts of one page, which are read together",
};

const listFiles = (): string[] =>
  Bun.spawnSync(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: ROOT })
    .stdout.toString()
    .split("\0")
    .filter((path) => path !== "" && pathExists(path));

test(`[RP-18] no folder of the code has more than ${MAX_ENTRIES} files without a reason`, () => {
  const counts = Map.groupBy(
    listFiles().filter((path) => /^(src|actors|db|test)\/.*\.tsx?$/.test(path)),
    (path) => dirname(path),
  );
  const large = [...counts].filter(([folder, files]) => files.length > MAX_ENTRIES && !(folder in LARGER));
  expect(large.map(([folder, files]) => `${folder}: ${files.length}`)).toEqual([]);
  expect(Object.keys(LARGER).filter((folder) => !counts.has(folder))).toEqual([]);
});
