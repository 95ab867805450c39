// Finds a passage that looks the same although its characters differ: composed and decomposed letters, typographic quotes and dashes,
// no-break and other spaces, tabs for spaces, invisible characters. Unedited parts keep the file's characters. Pure.

/**
 * A text in normalized form. `offsets[i]` is the offset of character i in the original text; the last entry is the length of the original
 * text.
 */
type NormalizedText = { readonly text: string; readonly offsets: readonly number[] };
export type Match = { readonly from: number; readonly to: number };

const LOOKALIKE_CHARACTERS: readonly (readonly [characters: RegExp, plain: string])[] = [
  [/[\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc]/g, "'"],
  [/[\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb]/g, '"'],
  [/[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g, "-"],
  [/\u2026/g, "..."],
];
// A letter with its marks, a run of whitespace, a line end, invisible characters, or any other character.
const TEXT_UNITS = /\r?\n|[^\S\r\n]+|[\u200b-\u200d\u2060\ufeff\u00ad]+|\P{M}\p{M}*|\p{M}+/gu;
const INVISIBLE_CHARACTERS = /^[\u200b-\u200d\u2060\ufeff\u00ad]+$/;

/** Returns the non-overlapping matches of the passage. */
export const findAlike = (text: string, passage: string): Match[] => {
  const target = normalize(passage).text;
  if (target.trim() === "") return [];
  const { text: plain, offsets } = normalize(text);
  const found: Match[] = [];
  for (let from = plain.indexOf(target); from >= 0; from = plain.indexOf(target, from + target.length)) {
    found.push({ from: offsets[from] ?? 0, to: offsets[from + target.length] ?? text.length });
  }
  return found;
};

/** Returns the replacement for the match: keeps the file's own characters where old and new text are equal, and its indentation. */
export const buildReplacement = (
  text: string,
  { from, to }: Match,
  { old_text, new_text }: { readonly old_text: string; readonly new_text: string },
): string => {
  const before = text.slice(from, to);
  const target = matchIndent(before, isAtLineStart(text, from), old_text, new_text);
  const [file, next] = [normalize(before), normalize(target)];
  const shorter = Math.min(file.text.length, next.text.length);
  let start = 0;
  while (start < shorter && file.text[start] === next.text[start]) start += 1;
  let end = 0;
  while (end < shorter - start && file.text.at(-1 - end) === next.text.at(-1 - end)) end += 1;
  // Never split an original character that was normalized to several.
  while (start > 0 && (splitsCharacter(file, start) || splitsCharacter(next, start))) start -= 1;
  while (end > 0 && (splitsCharacter(file, file.text.length - end) || splitsCharacter(next, next.text.length - end)))
    end -= 1;
  return (
    before.slice(0, file.offsets[start]) +
    target.slice(next.offsets[start], next.offsets[next.text.length - end]) +
    before.slice(file.offsets[file.text.length - end])
  );
};

/** Returns true if the index splits an original character that was normalized to several. */
const splitsCharacter = ({ offsets }: NormalizedText, index: number): boolean =>
  index > 0 && offsets[index] === offsets[index - 1];

const normalize = (text: string): NormalizedText => {
  const pieces: string[] = [];
  const offsets: number[] = [];
  for (const match of text.matchAll(TEXT_UNITS)) {
    const piece = normalizeUnit(match[0], text[match.index + match[0].length]);
    pieces.push(piece);
    for (let count = 0; count < piece.length; count++) offsets.push(match.index);
  }
  offsets.push(text.length);
  return { text: pieces.join(""), offsets };
};

/** Returns the normalized unit. `next`: the character after it. */
const normalizeUnit = (unit: string, next: string | undefined): string => {
  if (unit.endsWith("\n")) return "\n";
  if (INVISIBLE_CHARACTERS.test(unit)) return "";
  if (/^\s+$/.test(unit)) return next === "\n" || next === "\r" ? "" : " ";
  return LOOKALIKE_CHARACTERS.reduce(
    (text, [characters, plain]) => text.replace(characters, plain),
    unit.normalize("NFC"),
  );
};

const isAtLineStart = (text: string, at: number): boolean =>
  /(^|\n)[ \t]*$/.test(text.slice(Math.max(0, at - 400), at));

const getIndent = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? "";

/** Converts the new text to the file's indentation style, as far as the passage shows it. */
const matchIndent = (before: string, startsAtLine: boolean, old_text: string, new_text: string): string => {
  const fileLines = before.split(/\r?\n/);
  const fileIndents = new Map<string, string>();
  let spacesPerTab = 0;
  for (const [index, line] of old_text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || (index === 0 && !startsAtLine)) continue;
    const [passageIndent, actual] = [getIndent(line), getIndent(fileLines[index] ?? "")];
    fileIndents.set(passageIndent, actual);
    if (/^ +$/.test(passageIndent) && /^\t+$/.test(actual)) spacesPerTab ||= passageIndent.length / actual.length;
  }
  const reindent = (line: string): string => {
    const indent = getIndent(line);
    const knownIndent = fileIndents.get(indent);
    if (knownIndent !== undefined) return knownIndent + line.slice(indent.length);
    if (!Number.isInteger(spacesPerTab) || spacesPerTab === 0 || indent.includes("\t")) return line;
    const tabs = Math.floor(indent.length / spacesPerTab);
    return "\t".repeat(tabs) + " ".repeat(indent.length - tabs * spacesPerTab) + line.slice(indent.length);
  };
  return new_text
    .split(/\r?\n/)
    .map((line, index) => (line.trim() === "" || (index === 0 && !startsAtLine) ? line : reindent(line)))
    .join("\n");
};
