// Anyone who makes something that has an actor says first of which part it is: nobody can look up what is not there yet, and on another node than that of
// its part it could not be written.
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { scaled } from "#test/support/pace.ts";

// On a machine with much else to do.
setDefaultTimeout(scaled(60_000));

const ROOT = join(import.meta.dir, "../..");
const MAKES = /(\w+)(?:\(\))?\s*\.ask\((\w+), "(?:create|fork)"/g;

test("[CP-23] anyone who asks an actor to be made has said of which part it is", () => {
  const makers = ["actors", "src"].flatMap((folder) =>
    [...new Bun.Glob("**/*.ts").scanSync({ cwd: join(ROOT, folder) })].flatMap((file) => {
      const text = readFileSync(join(ROOT, folder, file), "utf8");
      return [...text.matchAll(MAKES)].map(({ 1: actors, 2: id, index }) => {
        const isSaid = new RegExp(`\\b${actors}(\\(\\))?\\.expect\\(${id}, `).test(text.slice(0, index));
        return { file: `${folder}/${file}`, isSaid };
      });
    }),
  );
  expect(makers.length).toBeGreaterThan(5);
  expect(makers.filter(({ isSaid }) => !isSaid)).toEqual([]);
});
