// Code that creates an object with an actor declares where it belongs first: an object that does not exist yet cannot be looked up, and on a node
// without its shard it could not be written.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const MAKES = /(\w+)(?:\(\))?\s*\.ask\((\w+), "(?:create|fork)"/g;

test("[CP-23] every caller that creates an actor declares its shard first", () => {
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
