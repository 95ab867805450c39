// Functions of the tools that need no server: truncation, durations, edits and diffs.
import { expect, test } from "bun:test";
import { createUnifiedDiff } from "#src/daemon/git/unified-diff.ts";
import { applyEdit } from "#src/daemon/http/edit-text.ts";
import { trimPartialCharacter } from "#src/daemon/whole-characters.ts";
import { HeadTailBuffer, truncateMiddle, truncateResult } from "#src/tools/cut.ts";
import { parseDuration } from "#src/tools/duration.ts";
import { computeResultLimit } from "#src/tools/run.ts";

test("[TO-3] truncates texts in the middle, never inside a character, and inserts the number of missing bytes", () => {
  const text = "aß€😀".repeat(2_000);
  for (const limit of [100, 101, 102, 103, 1_000, 4_097]) {
    const { text: truncatedText, truncated } = truncateMiddle(text, limit);
    const [head = "", tail = ""] = truncatedText.split(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
    expect(truncated).toBe(true);
    expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
    expect(Buffer.byteLength(head + tail)).toBeWithin(limit - 8, limit + 1);
  }
  expect(truncateMiddle(text, 100_000)).toEqual({ text, truncated: false });
});

test("[TO-3] collects long output in little memory, with the same result as truncating the complete output", () => {
  const buffer = new HeadTailBuffer(300);
  let completeText = "";
  for (let index = 0; index < 5_000; index += 1) {
    const line = `line ${index} 😀\n`;
    buffer.add(line);
    completeText += line;
  }
  expect(buffer.result).toEqual(truncateMiddle(completeText, 300));
});

test("[TO-3] results never exceed their limit, whatever they contain", () => {
  const results = [
    { output: '"\n'.repeat(60_000), exit_code: 0 },
    { output: "x".repeat(70_000), error: "y".repeat(70_000) },
    { processes: Array.from({ length: 3_000 }, (_, id) => ({ id, command: "sleep 600".repeat(5) })) },
  ];
  for (const result of results) {
    const truncatedResult = truncateResult(result, 65_536);
    expect(truncatedResult.truncated).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(truncatedResult))).toBeLessThanOrEqual(65_536);
  }
  expect(truncateResult({ ok: true }, 65_536)).toEqual({ ok: true });
});

test("[TO-2] pieces of output end with whole characters", () => {
  const bytes = new TextEncoder().encode("aß€😀z");
  for (let end = 0; end <= bytes.byteLength; end += 1) {
    const completeBytes = trimPartialCharacter(bytes.subarray(0, end));
    expect(new TextDecoder("utf-8", { fatal: true }).decode(completeBytes)).toBe(
      "aß€😀z".slice(0, [...new TextDecoder().decode(completeBytes)].join("").length),
    );
    expect(end - completeBytes.byteLength).toBeLessThan(4);
  }
});

test("[TO-4] parses durations in the forms that people write", () => {
  const parse = (text: string | undefined) => parseDuration(text, 7, 14_400_000);
  expect([undefined, "", "0s", "0", "10s", "1m30s", "1.5h", "500ms", "9h"].map(parse)).toEqual([
    ...[7, 7, 0, 0, 10_000, 90_000, 5_400_000, 500, 14_400_000],
  ]);
  expect(["5", " 2.5 ", "99999999"].map(parse)).toEqual([5_000, 2_500, 14_400_000]);
  for (const invalid of ["soon", "-1", "1e3", "-1s", "10 s", "1s;", "NaN"])
    expect(() => parse(invalid)).toThrow("is not a duration");
});

test("[TO-10] a diff shows the removed and added lines and their positions", () => {
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`);
  const changedLines = lines.flatMap((line, index) => (index === 2 ? [] : index === 15 ? [line, "new"] : [line]));
  expect(createUnifiedDiff("f", `${lines.join("\n")}\n`, `${changedLines.join("\n")}\n`)).toBe(
    [
      ...["--- f", "+++ f", "@@ -1,6 +1,5 @@", " line 0", " line 1", "-line 2", " line 3", " line 4", " line 5"],
      ...["@@ -14,6 +13,7 @@", " line 13", " line 14", " line 15", "+new", " line 16", " line 17", " line 18", ""],
    ].join("\n"),
  );
  expect(createUnifiedDiff("f", "", "one\n")).toBe("--- f\n+++ f\n@@ -0,0 +1,1 @@\n+one\n");
  expect(createUnifiedDiff("f", "one\n", "")).toBe("--- f\n+++ f\n@@ -1,1 +0,0 @@\n-one\n");
  expect(createUnifiedDiff("f", "one\n", "one\n")).toBe("");
});

test("[TO-10] an exact match is preferred to a similar one, and `$` is not a pattern", () => {
  const apply = (text: string, old_text: string, new_text: string) => applyEdit(text, { old_text, new_text });
  expect(apply("a\n a\n", "a\n a", "$& $1")).toEqual({ text: "$& $1\n" });
  expect(apply("\tif\n\t\tx\n", "if\n\tx\n", "if\n\ty\n")).toEqual({ text: "\tif\n\t\ty\n" });
  expect(apply("  a\nb\n", "a\n b", "c")).toEqual({
    field: "old_text",
    problem: "is not in the file. All of its lines are in the file, but not in this order or with this indentation.",
  });
  expect(apply("x", "   ", "y")).toEqual({ field: "old_text", problem: "is not in the file." });
});

test("[TO-25] finds a lookalike passage and leaves unedited text unchanged", () => {
  const apply = (text: string, old_text: string, new_text: string) => applyEdit(text, { old_text, new_text });
  const rows: [text: string, old_text: string, new_text: string, expected: string][] = [
    // Decomposed letters in the file.
    ["un cafe\u0301 noir\n", "un caf\u00e9 noir", "un caf\u00e9 blanc", "un cafe\u0301 blanc\n"],
    // Composed letters in the file.
    ["un caf\u00e9 noir\n", "un cafe\u0301 noir", "un cafe\u0301 blanc", "un caf\u00e9 blanc\n"],
    // Typographic quotes, dashes and ellipses.
    [
      "say \u201chello\u201d \u2013 it\u2019s\u2026\n",
      'say "hello" - it\'s...',
      'say "bye" - it\'s...',
      "say \u201cbye\u201d \u2013 it\u2019s\u2026\n",
    ],
    // No-break spaces, and spaces of other widths.
    ["10\u00a0km at 4\u202fPM\n", "10 km at 4 PM", "12 km at 4 PM", "12\u00a0km at 4\u202fPM\n"],
    // Invisible characters.
    ["a\u200bb = 1\n", "ab = 1", "ab = 2", "a\u200bb = 2\n"],
    // Tabs written as spaces: the new lines get the file's indentation.
    [
      "\tif (a) {\n\t\tb();\n\t}\n",
      "    if (a) {\n        b();\n    }\n",
      "    if (a) {\n        c();\n            d();\n    }\n",
      "\tif (a) {\n\t\tc();\n\t\t\td();\n\t}\n",
    ],
    // Spaces written as tabs, and in the middle of a line.
    ["  key:   value\n", "\tkey:\tvalue", "\tkey:\tother", "  key:   other\n"],
    // With the line endings of another system.
    ["say \u201ca\u201d\r\nthen\r\n", 'say "a"\nthen', 'say "a"\nnow', "say \u201ca\u201d\r\nnow\r\n"],
  ];
  for (const [text, old_text, new_text, expected] of rows)
    expect(apply(text, old_text, new_text)).toEqual({ text: expected });
  // Passages copied from read_file, with its line numbers.
  expect(apply("a\nb\nc\n", "2\tb\n3\tc", "2\tx\n3\tc")).toEqual({ text: "a\nx\nc\n" });
  // Lines keep the endings of their neighbors, and a lone carriage return is not a line end.
  expect(apply("a\r\nb\r\nc\nd\ne\rf\n", "c\nd", "c\nx\nd")).toEqual({ text: "a\r\nb\r\nc\nx\nd\ne\rf\n" });
  expect(apply("a\r\nb\r\nc\nd\n", "a\nb", "a\nx\nb")).toEqual({ text: "a\r\nx\r\nb\r\nc\nd\n" });
  // An ambiguous match is treated as not found.
  expect(apply("\u201ca\u201d \u201ca\u201d", '"a"', "b")).toMatchObject({ field: "old_text" });
});

test("[TO-25] reports the most similar line for a missing passage, and refuses an edit that changes nothing", () => {
  const text = "import a from 'a';\nexport const total = (one: number) => one + 1;\n";
  expect(applyEdit(text, { old_text: "export const total = (one) => one + 1;", new_text: "x" })).toEqual({
    field: "old_text",
    problem: 'is not in the file. The nearest line is 2: "export const total = (one: number) => one + 1;"',
  });
  expect(applyEdit(text, { old_text: "something else entirely", new_text: "x" })).toEqual({
    field: "old_text",
    problem: "is not in the file.",
  });
  expect(applyEdit(text, { old_text: "import", new_text: "import" })).toEqual({
    field: "new_text",
    problem: "is the same as old_text, so nothing would change",
  });
  expect(applyEdit("caf\u00e9\n", { old_text: "cafe\u0301", new_text: "caf\u00e9" })).toEqual({
    field: "new_text",
    problem: "is what the file says already",
  });
});

test("[TO-3] a result may fill about a third of the model's context, at least 16 KB, or 64 KB if the size is unknown", () => {
  expect([0, 4_000, 100_000, 1_000_000].map(computeResultLimit)).toEqual([65_536, 16_384, 100_000, 262_144]);
});
