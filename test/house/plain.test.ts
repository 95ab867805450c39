// Object literals are written plainly: known members are written directly into their object.
import { expect, test } from "bun:test";
import { readPage } from "#test/support/documents.ts";

/** `...{ a, b }` in an object, in JSX, or wrapped in parentheses for an `as const`. */
const SPREAD_LITERAL = /\.\.\.\(?\{/;

const findSpreads = (file: string, text: string): string[] =>
  text
    .split("\n")
    .flatMap((line, index) => (SPREAD_LITERAL.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : []));

const files = ["src", "actors", "db", "test"].flatMap((folder) => [
  ...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: `${import.meta.dir}/../..` }),
]);

test("[RP-19] no object literal is spread into another", () => {
  expect(files.length).toBeGreaterThan(1_000);
  const found = files.filter((file) => file !== "test/house/plain.test.ts");
  expect(found.flatMap((file) => findSpreads(file, readPage(file)))).toEqual([]);
});

// biome-ignore format: a table of cases
const spreads: string[] = ["  ...{ a, b },", "  ...({ kind: \"x\" } as const),", "  {...{ hidden: true }}", "  ...{", "f({ ...{ a }, b })"];
test.each(spreads)("[RP-19] detects %s", (line) => {
  expect(findSpreads("x.ts", line)).toHaveLength(1);
});

test("[RP-19] conditional and named objects may be spread", () => {
  expect(findSpreads("x.ts", "{ ...rest, ...(is ? { a } : {}), ...[a, b], ...of({ a }) }")).toEqual([]);
});
