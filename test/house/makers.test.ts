// Code that creates an object with an actor declares the object's owner first: an object that does not exist yet cannot be looked up, and a
// node without its shard could not write it.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const CREATION = /(\w+)(?:\(\))?\s*\.ask\((\w+), "(?:create|fork)"/g;

test("[CP-23] every caller that creates an actor declares its shard first", () => {
  const creations = ["actors", "src"].flatMap((folder) =>
    [...new Bun.Glob("**/*.ts").scanSync({ cwd: join(ROOT, folder) })].flatMap((file) => {
      const text = readFileSync(join(ROOT, folder, file), "utf8");
      return [...text.matchAll(CREATION)].map(({ 1: actors, 2: id, index }) => {
        const isDeclared = new RegExp(`\\b${actors}(\\(\\))?\\.expect\\(${id}, `).test(text.slice(0, index));
        return { file: `${folder}/${file}`, isDeclared };
      });
    }),
  );
  expect(creations.length).toBeGreaterThan(5);
  expect(creations.filter(({ isDeclared }) => !isDeclared)).toEqual([]);
});
