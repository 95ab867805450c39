// Descriptions as pages render them: only inline Markdown is formatted.
import { expect, test } from "bun:test";
import { type Piece, readInline } from "#src/web/app/parts/inline/inline-reader.ts";

/** Serializes the elements. */
const formatPieces = (pieces: readonly Piece[]): string =>
  pieces
    .map((piece) => {
      if (typeof piece === "string") return piece;
      if (piece.kind === "code") return `{code ${piece.text}}`;
      return piece.kind === "link"
        ? `{link ${piece.href} ${formatPieces(piece.content)}}`
        : `{${piece.kind} ${formatPieces(piece.content)}}`;
    })
    .join("");

test.each([
  ["How **big** it is, by `nproc`", "How {strong big} it is, by {code nproc}"],
  [
    "**bold *and slanted* more**, __so__ and _so_, ~~gone~~ ***both***",
    "{strong bold {em and slanted} more}, {strong so} and {em so}, {s gone} {strong {em both}}",
  ],
  ['[the **table**](https://example.com/a_(b) "sizes")', "{link https://example.com/a_(b) the {strong table}}"],
  [
    "see https://example.com/a. Or <https://b.example>",
    "see {link https://example.com/a https://example.com/a}. Or {link https://b.example https://b.example}",
  ],
  ["![a picture](https://example.com/a.png)", "{link https://example.com/a.png a picture}"],
  ["snake_case_name, 2 * 3 * 4, **left open, a\\*b", "snake_case_name, 2 * 3 * 4, **left open, a*b"],
  // Only web and mail links are kept, and HTML is shown as text.
  ["[run](javascript:alert(1)) <b onclick=x>b</b> [file](file:///etc/passwd)", "run <b onclick=x>b</b> file"],
])("[WB-81] %j is rendered as %j", (text, expected) => expect(formatPieces(readInline(text))).toBe(expected));

test("[WB-81] a text crafted to be expensive is parsed quickly, and a text that is too long is not parsed", () => {
  const startedAt = performance.now();
  for (const piece of ["*", "**a", "`", "[", "_a", "~~a", "[a](", "*a **b** "])
    readInline(piece.repeat(4000 / piece.length));
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(readInline("**a** ".repeat(1_000))).toEqual(["**a** ".repeat(1_000)]);
});
