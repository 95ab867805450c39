// Keeps archaic and translated phrases out of the code and the documentation: each folder has a maximum number that may only sink.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** Phrases that read like a literal translation. The plain word is always shorter: retry, revoke, immediately, in addition to. */
const PHRASES =
  /\b(?:whoever|wherever|anew|nobody|told|the like|to be had|by (?:itself|themselves)|beside|at once|meanwhile|puts? off|lets? go|comes? back|(?:is|are) gone|those (?:that|who)|there (?:is|are) none|what is left|goes on|no longer counts|said so|mends?|mended)\b|\b(?:MOST|LEAST|LONGEST)_[A-Z]/gi;

/** The maximum number in each folder. Lower it after you have rewritten some; never raise it. */
const MAX_PHRASES: Readonly<Record<string, number>> = {
  actors: 8,
  db: 6,
  docs: 5,
  "src/api": 0,
  "src/base": 3,
  "src/cli": 0,
  "src/cluster": 0,
  "src/context": 0,
  "src/daemon": 0,
  "src/domain": 6,
  "src/hooks": 0,
  "src/identity": 0,
  "src/llm": 0,
  "src/mcp": 0,
  "src/notify": 0,
  "src/provisioners": 0,
  "src/schema": 1,
  "src/tailnet": 0,
  "src/tools": 0,
  "src/web": 0,
  "src/wire": 0,
  test: 8,
};

/** `is no X` instead of `is not an X`; "there is no X" and "no longer" are fine. */
const NEGATED_NOUN =
  /(?<!\b[Tt]here )(?<!\b(?:that|if) )\b(?:is|are|was|were) no (?!longer|more|other|less|larger)[a-z]+/g;
const MAX_NEGATED_NOUNS = 2;

/** Variables named by a participle or a verb instead of by their content: `requested`, `message`, `created`, `attempt`, `received`. */
const PARTICIPLE_NAME = /\b(?:const|let) (?:asked|said|made|begun|heard|told|wish|wishes|stranger|strangers|looker)\b/g;
const MAX_PARTICIPLE_NAMES = 28;

/** Functions of the product named `xOf` instead of by what they do. */
const MAX_OF_FUNCTIONS = 9;

const root = `${import.meta.dir}/../..`;

const listFiles = (folder: string): string[] =>
  [...new Bun.Glob(`${folder}/**/*.{ts,tsx,md,txt}`).scanSync({ cwd: root })].filter(
    (file) =>
      !/^test\/house\/(?:plain-)?words\.test\.ts$/.test(file) &&
      !/^src\/wire\/gen\/|\/migrations\/|^docs\/spec\/|^test\/results\/|\/fixtures\//.test(file),
  );

const findIn = (folder: string): string[] =>
  listFiles(folder).flatMap((file) =>
    readPage(file)
      .split("\n")
      .flatMap((line, index) => [...line.matchAll(PHRASES)].map(([phrase]) => `${file}:${index + 1}: ${phrase}`)),
  );

test("[RP-42] no folder gains phrases that read like a translation", () => {
  const folders = Object.entries(MAX_PHRASES).map(([folder, max]) => ({ max, found: findIn(folder) }));
  // One of these is new: replace it by a plain word.
  expect(folders.filter(({ max, found }) => found.length > max).flatMap(({ found }) => found)).toEqual([]);
});

const countIn = (pattern: RegExp): string[] =>
  ["src", "actors", "db", "test"]
    .flatMap(listFiles)
    .flatMap((file) => (readPage(file).match(pattern) ?? []).map((found) => `${file}: ${found}`));

test('[RP-42] negated nouns say "is not a", instead of "is no"', () => {
  const found = countIn(NEGATED_NOUN);
  expect(found.length > MAX_NEGATED_NOUNS ? found : []).toEqual([]);
});

test("[RP-42] variables have the name of their content, not a participle", () => {
  const found = countIn(PARTICIPLE_NAME);
  expect(found.length > MAX_PARTICIPLE_NAMES ? found : []).toEqual([]);
});

test("[RP-42] functions are named after what they do, not `xOf`", () => {
  const product = ["src", "actors", "db"].flatMap(listFiles).filter((file) => !file.endsWith(".md"));
  const found = product.flatMap((file) => readPage(file).match(/^(?:export )?(?:const|function) [a-z]\w*Of\b/gm) ?? []);
  expect(found.length).toBeLessThanOrEqual(MAX_OF_FUNCTIONS);
});

/** Sizes have binary units: KiB, MiB, GiB. Comments are exempt, because they are about measurements and not for users. */
const DECIMAL_SIZE = /\d ?(?:kB|KB|MB|GB|TB)\b/g;
const COMMENT = /^\s*(?:\/\/|\/?\*)/;

test("[RP-50] sizes have the units KiB, MiB and GiB in messages, templates, tools and documentation", () => {
  const files = [...new Bun.Glob("{docs,src,actors,db,deploy}/**/*.{ts,tsx,md,txt,yaml}").scanSync({ cwd: root })];
  const found = files
    .filter((file) => !/^src\/wire\/gen\/|\/migrations\/|^docs\/spec\//.test(file))
    .flatMap((file) =>
      readPage(file)
        .split("\n")
        .flatMap((line, index) =>
          COMMENT.test(line) ? [] : [...line.matchAll(DECIMAL_SIZE)].map(([size]) => `${file}:${index + 1}: ${size}`),
        ),
    );
  expect(found).toEqual([]);
});
