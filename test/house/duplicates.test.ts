// Duplicate code: sequences of six identical lines in two files or in one. Extract a function, or check why both are needed.
import { expect, test } from "bun:test";
import { ROOT, readPage } from "#test/support/documents.ts";

const RUN_LENGTH = 6;
/** The maximum number of duplicates. Lower it when you remove one; never raise it. */
const MAX_RUNS = 3;

type Line = { readonly text: string; readonly number: number };
type Source = { readonly file: string; readonly text: string };

/** Returns the lines without imports, comments, blank lines and lines of punctuation. Collapses whitespace. */
const listMeaningfulLines = (text: string): Line[] => {
  const keepLineBreaks = (part: string): string => part.replace(/[^\n]/g, "");
  const withoutComments = text
    .replace(/^(?:import|export) (?:type )?(?:\{[^}]*\}|\* as \w+|\w+)(?:, \{[^}]*\})? from .*$/gm, keepLineBreaks)
    .replace(/^\s*\/\*\*?[\s\S]*?\*\/$/gm, keepLineBreaks)
    .replace(/^\s*\/\/.*$/gm, "");
  return withoutComments
    .split("\n")
    .map((line, number) => ({ text: line.trim().replace(/\s+/g, " "), number: number + 1 }))
    .filter((line) => /\w/.test(line.text));
};

/** Returns `file:line ~ file:line` of each sequence that also occurs earlier, possibly in the same file. */
const findDuplicates = (sources: readonly Source[]): string[] => {
  const locations = new Map<string, string>();
  const runs: string[] = [];
  for (const { file, text } of sources) {
    const lines = listMeaningfulLines(text);
    let isInRun = false;
    for (let start = 0; start + RUN_LENGTH <= lines.length; start += 1) {
      const window = lines.slice(start, start + RUN_LENGTH);
      const location = `${file}:${window[0]?.number}`;
      const key = window.map((line) => line.text).join("\n");
      const earlier = locations.get(key);
      if (earlier === undefined) locations.set(key, location);
      else if (!isInRun) runs.push(`${earlier} ~ ${location}`);
      isInRun = earlier !== undefined;
    }
  }
  return runs;
};

/** Generated files: the routes as types, and the protocol messages. */
const isGenerated = (file: string): boolean => file === "src/schema/routes.ts" || file.startsWith("src/wire/gen/");

test(`[RP-41] no more than ${MAX_RUNS} runs of ${RUN_LENGTH} lines are duplicated`, () => {
  const files = ["src", "actors", "db"].flatMap((folder) => [
    ...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT }),
  ]);
  const sources = files.filter((file) => !isGenerated(file)).map((file) => ({ file, text: readPage(file) }));
  expect(sources.length).toBeGreaterThan(1_000);
  const found = findDuplicates(sources);
  expect(found.length, found.join("\n")).toBeLessThanOrEqual(MAX_RUNS);
});

const createLines = (name: string): string =>
  Array.from({ length: RUN_LENGTH }, (_, number) => `  ${name}${number}();`).join("\n");

test("[RP-41] a duplicate is counted once, whatever its length and location; imports, comments and blank lines do not count", () => {
  const longRun = `${createLines("a")}\n${createLines("b")}`;
  const spacedRun = longRun.replaceAll("\n", "\n\n  // why\n    ");
  const imports = `import {\n  ${Array.from({ length: 20 }, (_, index) => `name${index},`).join("\n  ")}\n} from "x";\n`;
  expect(
    findDuplicates([
      { file: "a.ts", text: imports + longRun },
      { file: "b.ts", text: `${imports}${createLines("c")}\n${spacedRun}` },
    ]),
  ).toEqual([`a.ts:23 ~ b.ts:29`]);
  expect(findDuplicates([{ file: "a.ts", text: `${createLines("a")}\nx();\n${createLines("a")}` }])).toEqual([
    "a.ts:1 ~ a.ts:8",
  ]);
  const shortRun = createLines("a").split("\n").slice(1).join("\n");
  expect(findDuplicates([{ file: "a.ts", text: `${shortRun}\nx();\n${shortRun}` }])).toEqual([]);
});
