// Long input to a terminal in the browser.
import { expect, test } from "bun:test";
import { splitPieces } from "#src/web/app/parts/terminal/split-input.ts";

test("[TM-9] a paste is sent in pieces that fit into messages, none cut inside a character", () => {
  expect(splitPieces("")).toEqual([]);
  expect(splitPieces("ls\r")).toEqual(["ls\r"]);
  const text = `a${"\u{1f600}".repeat(1_000_000)}`;
  const pieces = splitPieces(text);
  expect(pieces.join("")).toBe(text);
  expect(Math.max(...pieces.map((piece) => JSON.stringify({ data: piece }).length))).toBeLessThan(64 * 1024);
  expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
});
