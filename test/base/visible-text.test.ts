// The characters that names must not contain are the ones that other texts show as escape codes.
import { expect, test } from "bun:test";
import { HIDDEN, JOINERS } from "#base/hidden-characters.ts";
import { escapeAllHidden, escapeHidden, escapeInvisible } from "#base/visible-text.ts";

const UNITS = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));
const listMatches = (characters: string): string[] => UNITS.filter((unit) => new RegExp(`[${characters}]`).test(unit));

test("[HT-26] every character that a name must not contain is displayed as an escape code or a blank", () => {
  for (const character of [...listMatches(HIDDEN), ...listMatches(JOINERS)]) {
    if (character === "\n") continue;
    expect([character, escapeAllHidden(`a${character}b`)]).toEqual([
      character,
      expect.stringMatching(/^a(\\u[0-9a-f]{4}| {4})b$/),
    ]);
  }
});

test("[HT-26] no other character is changed", () => {
  const visible = UNITS.filter((unit) => !new RegExp(`[${HIDDEN}${JOINERS}]`).test(unit)).join("");
  expect(escapeAllHidden(visible) === visible).toBe(true);
  expect(escapeInvisible("a\n\tb")).toBe("a\n\tb");
});

test("[HT-26] both halves of a tag are escaped, and text without decisions keeps its emoji", () => {
  expect(escapeInvisible("rm \u{e0041}x")).toBe("rm \\udb40\\udc41x");
  expect(escapeHidden("\u{1f469}\u200d\u{1f4bb} \u202e")).toBe("\u{1f469}\u200d\u{1f4bb} \\u202e");
});
