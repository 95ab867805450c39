// Keeps archaic and translated phrases out of the code and the documentation: each folder has a ceiling that may only go down.
import { expect, test } from "bun:test";
import { page } from "#test/support/documents.ts";

/** Phrases that read like a literal translation. The plain word is in each case shorter to find: retry, revoke, immediately, in addition to. */
const PHRASES =
  /\b(?:whoever|wherever|anew|nobody|told|the like|to be had|by (?:itself|themselves)|beside|at once|meanwhile|puts? off|lets? go|comes? back|(?:is|are) gone|those (?:that|who)|there (?:is|are) none|what is left|goes on|no longer counts|said so|mends?|mended)\b|\b(?:MOST|LEAST|LONGEST)_[A-Z]/gi;

/** How many each folder has. Lower a number after you have rewritten some; never raise one. */
const CEILINGS: Readonly<Record<string, number>> = {
  actors: 309,
  db: 275,
  docs: 30,
  "src/api": 200,
  "src/base": 6,
  "src/cli": 96,
  "src/cluster": 14,
  "src/context": 14,
  "src/daemon": 125,
  "src/domain": 220,
  "src/hooks": 3,
  "src/identity": 0,
  "src/llm": 4,
  "src/mcp": 0,
  "src/notify": 0,
  "src/provisioners": 104,
  "src/schema": 25,
  "src/tailnet": 1,
  "src/tools": 25,
  "src/web": 155,
  "src/wire": 1,
  test: 2_130,
};

/** Functions of the product that are named `xOf` instead of by what they do. */
const MAX_OF_FUNCTIONS = 83;

const root = `${import.meta.dir}/../..`;

const filesOf = (folder: string): string[] =>
  [...new Bun.Glob(`${folder}/**/*.{ts,tsx,md}`).scanSync({ cwd: root })].filter(
    (file) =>
      file !== "test/house/plain-words.test.ts" &&
      !/^src\/wire\/gen\/|\/migrations\/|^docs\/spec\/|^test\/results\/|\/fixtures\//.test(file),
  );

const countIn = (folder: string): number =>
  filesOf(folder).reduce((sum, file) => sum + (page(file).match(PHRASES)?.length ?? 0), 0);

test("[RP-42] no folder gains phrases that read like a translation", () => {
  const counts = Object.keys(CEILINGS).map((folder) => [folder, countIn(folder)] as const);
  expect(counts.filter(([folder, count]) => count > (CEILINGS[folder] as number))).toEqual([]);
});

test("[RP-42] functions are named by what they do, not `xOf`", () => {
  const product = ["src", "actors", "db"].flatMap(filesOf).filter((file) => !file.endsWith(".md"));
  const found = product.flatMap((file) => page(file).match(/^(?:export )?(?:const|function) [a-z]\w*Of\b/gm) ?? []);
  expect(found.length).toBeLessThanOrEqual(MAX_OF_FUNCTIONS);
});
