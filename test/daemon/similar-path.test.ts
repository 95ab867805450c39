// Files with names that look like the requested one, on a real disk.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resolveSimilarPath } from "#src/daemon/http/similar-path.ts";
import { tempDirectory } from "#test/support/server.ts";

test("[TO-25] a file is found by a lookalike name if only one file matches", async () => {
  using temp = tempDirectory();
  const touchFile = (...names: string[]): string => {
    const path = join(temp.path, ...names);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "");
    return path;
  };
  const shot = touchFile("Cafe\u0301", "Screenshot 4.12\u202fPM.txt");
  expect(await resolveSimilarPath(join(temp.path, "Caf\u00e9", "Screenshot 4.12 PM.txt"))).toBe(shot);
  const exact = touchFile("it's.txt");
  const curly = touchFile("it\u2019s.txt");
  expect(await resolveSimilarPath(exact)).toBe(exact);
  expect(await resolveSimilarPath(curly)).toBe(curly);
  // Two lookalikes are ambiguous, so neither matches.
  touchFile("a\u00a0b");
  touchFile("a\u2009b");
  const unclear = join(temp.path, "a b");
  expect(await resolveSimilarPath(unclear)).toBe(unclear);
  const absent = join(temp.path, "no", "such", "file");
  expect(await resolveSimilarPath(absent)).toBe(absent);
});
