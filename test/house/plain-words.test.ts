// Keeps archaic and translated phrases out of the code and the documentation: each folder has a ceiling that may only go down.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** Phrases that read like a literal translation. The plain word is always shorter: retry, revoke, immediately, in addition to. */
const PHRASES =
  /\b(?:whoever|wherever|anew|nobody|told|the like|to be had|by (?:itself|themselves)|beside|at once|meanwhile|puts? off|lets? go|comes? back|(?:is|are) gone|those (?:that|who)|there (?:is|are) none|what is left|goes on|no longer counts|said so|mends?|mended)\b|\b(?:MOST|LEAST|LONGEST)_[A-Z]/gi;

/** The number per folder. Lower it after you have rewritten some; never raise it. */
const CEILINGS: Readonly<Record<string, number>> = {
  actors: 68,
  db: 82,
  docs: 20,
  "src/api": 29,
  "src/base": 4,
  "src/cli": 7,
  "src/cluster": 13,
  "src/context": 5,
  "src/daemon": 54,
  "src/domain": 48,
  "src/hooks": 1,
  "src/identity": 0,
  "src/llm": 0,
  "src/mcp": 0,
  "src/notify": 0,
  "src/provisioners": 20,
  "src/schema": 18,
  "src/tailnet": 0,
  "src/tools": 0,
  "src/web": 29,
  "src/wire": 0,
  test: 1_335,
};

/** Functions of the product named `xOf` instead of by what they do. */
const MAX_OF_FUNCTIONS = 83;

const root = `${import.meta.dir}/../..`;

const listFiles = (folder: string): string[] =>
  [...new Bun.Glob(`${folder}/**/*.{ts,tsx,md}`).scanSync({ cwd: root })].filter(
    (file) =>
      file !== "test/house/plain-words.test.ts" &&
      !/^src\/wire\/gen\/|\/migrations\/|^docs\/spec\/|^test\/results\/|\/fixtures\//.test(file),
  );

const countIn = (folder: string): number =>
  listFiles(folder).reduce((sum, file) => sum + (readPage(file).match(PHRASES)?.length ?? 0), 0);

test("[RP-42] no folder gains phrases that read like a translation", () => {
  const counts = Object.keys(CEILINGS).map((folder) => [folder, countIn(folder)] as const);
  expect(counts.filter(([folder, count]) => count > (CEILINGS[folder] as number))).toEqual([]);
});

test("[RP-42] functions are named by what they do, not `xOf`", () => {
  const product = ["src", "actors", "db"].flatMap(listFiles).filter((file) => !file.endsWith(".md"));
  const found = product.flatMap((file) => readPage(file).match(/^(?:export )?(?:const|function) [a-z]\w*Of\b/gm) ?? []);
  expect(found.length).toBeLessThanOrEqual(MAX_OF_FUNCTIONS);
});
