// Splitting of long terminal input, such as a paste.
import { expect, test } from "bun:test";
import { splitInput } from "#src/web/app/parts/terminal/split-input.ts";

test("[TM-9] a paste is split into pieces that fit into messages, and no piece splits a character", () => {
  expect(splitInput("")).toEqual([]);
  expect(splitInput("ls\r")).toEqual(["ls\r"]);
  const text = `a${"\u{1f600}".repeat(1_000_000)}`;
  const pieces = splitInput(text);
  expect(pieces.join("")).toBe(text);
  expect(Math.max(...pieces.map((piece) => JSON.stringify({ data: piece }).length))).toBeLessThan(64 * 1024);
  expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
});
