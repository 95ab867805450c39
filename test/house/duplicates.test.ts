// Duplicate code: sequences of six identical lines in two places. Extract a function, or check why both are
// needed. The ceiling may only be lowered.
import { expect, test } from "bun:test";
import { ROOT, readPage } from "#test/support/documents.ts";

const LINES = 6;
/** The maximum number of duplicates. Lower it when you remove one; never raise it. */
const CEILING = 3;

type Line = { readonly text: string; readonly at: number };
type Source = { readonly file: string; readonly text: string };

/** Drops meaningless lines: imports, comments, blank lines and punctuation. Collapses whitespace. */
const listMeaningfulLines = (text: string): Line[] => {
  const blank = (part: string): string => part.replace(/[^\n]/g, "");
  const bare = text
    .replace(/^(?:import|export) (?:type )?(?:\{[^}]*\}|\* as \w+|\w+)(?:, \{[^}]*\})? from .*$/gm, blank)
    .replace(/^\s*\/\*\*?[\s\S]*?\*\/$/gm, blank)
    .replace(/^\s*\/\/.*$/gm, "");
  return bare
    .split("\n")
    .map((line, at) => ({ text: line.trim().replace(/\s+/g, " "), at: at + 1 }))
    .filter((line) => /\w/.test(line.text));
};

/** Returns `file:line ~ file:line` of each sequence that also occurs earlier, possibly in the same file. */
const findDuplicates = (sources: readonly Source[]): string[] => {
  const first = new Map<string, string>();
  const runs: string[] = [];
  for (const { file, text } of sources) {
    const lines = listMeaningfulLines(text);
    let isInRun = false;
    for (let at = 0; at + LINES <= lines.length; at += 1) {
      const window = lines.slice(at, at + LINES);
      const place = `${file}:${window[0]?.at}`;
      const key = window.map((line) => line.text).join("\n");
      const earlier = first.get(key);
      if (earlier === undefined) first.set(key, place);
      else if (!isInRun) runs.push(`${earlier} ~ ${place}`);
      isInRun = earlier !== undefined;
    }
  }
  return runs;
};

/** Generated files: the routes as types, and the protocol messages. */
const isGenerated = (file: string): boolean => file === "src/schema/routes.ts" || file.startsWith("src/wire/gen/");

test(`[RP-41] no more than ${CEILING} runs of ${LINES} lines are duplicated`, () => {
  const files = ["src", "actors", "db"].flatMap((folder) => [
    ...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: ROOT }),
  ]);
  const sources = files.filter((file) => !isGenerated(file)).map((file) => ({ file, text: readPage(file) }));
  expect(sources.length).toBeGreaterThan(1_000);
  const found = findDuplicates(sources);
  expect(found.length, found.join("\n")).toBeLessThanOrEqual(CEILING);
});

const code = (name: string): string => Array.from({ length: LINES }, (_, at) => `  ${name}${at}();`).join("\n");

test("[RP-41] a duplicate is counted once, whatever its length and location; imports, comments and blank lines are not counted", () => {
  const long = `${code("a")}\n${code("b")}`;
  const spaced = long.replaceAll("\n", "\n\n  // why\n    ");
  const imports = `import {\n  ${Array.from({ length: 20 }, (_, at) => `name${at},`).join("\n  ")}\n} from "x";\n`;
  expect(
    findDuplicates([
      { file: "a.ts", text: imports + long },
      { file: "b.ts", text: `${imports}${code("c")}\n${spaced}` },
    ]),
  ).toEqual([`a.ts:23 ~ b.ts:29`]);
  expect(findDuplicates([{ file: "a.ts", text: `${code("a")}\nx();\n${code("a")}` }])).toEqual(["a.ts:1 ~ a.ts:8"]);
  const short = code("a").split("\n").slice(1).join("\n");
  expect(findDuplicates([{ file: "a.ts", text: `${short}\nx();\n${short}` }])).toEqual([]);
});
