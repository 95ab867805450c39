// Files whose names look like the requested name, on a real disk.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveSimilarPath } from "#src/daemon/http/similar-path.ts";
import { tempDirectory } from "#test/support/server.ts";

test("[TO-25] a file is found by a lookalike name if only one file matches", async () => {
  using temp = tempDirectory();
  const createFile = (...names: string[]): string => {
    const path = join(temp.path, ...names);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "");
    return path;
  };
  const screenshot = createFile("Cafe\u0301", "Screenshot 4.12\u202fPM.txt");
  expect(await resolveSimilarPath(join(temp.path, "Caf\u00e9", "Screenshot 4.12 PM.txt"))).toBe(screenshot);
  const exact = createFile("it's.txt");
  const curly = createFile("it\u2019s.txt");
  expect(await resolveSimilarPath(exact)).toBe(exact);
  expect(await resolveSimilarPath(curly)).toBe(curly);
  // Two lookalikes are ambiguous, so neither matches.
  createFile("a\u00a0b");
  createFile("a\u2009b");
  const ambiguous = join(temp.path, "a b");
  expect(await resolveSimilarPath(ambiguous)).toBe(ambiguous);
  const absent = join(temp.path, "no", "such", "file");
  expect(await resolveSimilarPath(absent)).toBe(absent);
});
