// Replaces a passage of a text, tolerating common model errors: line endings, trailing whitespace, indentation, and look-alike characters
// (fuzzy-text.ts). Tries exact matches first; replaces nothing if the passage is missing or not unique, or if the edit would change
// nothing. Pure.
import type { EditFiles } from "#schema/agents/agent-files.ts";
import { buildReplacement, findAlike } from "./fuzzy-text.ts";
import { findNearestLine } from "./similar-line.ts";

type Edit = EditFiles["files"][number]["edits"][number];
/** `text`: the replacement. */
type Passage = { readonly from: number; readonly to: number; readonly text: string };
type EditResult = { text: string } | { field: "old_text" | "new_text"; problem: string };

const MAX_LINES_NAMED = 10;

/** Returns the edited text, or the invalid field and the reason. */
export const applyEdit = (text: string, edit: Edit): EditResult => {
  const { old_text, new_text, replace_all = false } = edit;
  if (old_text === new_text) {
    return { field: "new_text", problem: "is the same as old_text, so nothing would change" };
  }
  let found = findPassages(text, old_text, new_text);
  if (found.length === 0) {
    const [withoutNumbers, replacement] = [stripLineNumbers(old_text), stripLineNumbers(new_text)];
    if (withoutNumbers !== old_text) found = findPassages(text, withoutNumbers, replacement);
  }
  if (found.length === 0)
    return { field: "old_text", problem: `is not in the file.${findNearestLine(text, old_text)}` };
  if (found.length > 1 && !replace_all) {
    const lines = found.slice(0, MAX_LINES_NAMED).map(({ from }) => text.slice(0, from).split("\n").length);
    const location = `in lines ${lines.join(", ")}${found.length > lines.length ? " and others" : ""}`;
    return {
      field: "old_text",
      problem: `is in the file ${found.length} times, ${location}; give more of the lines around it`,
    };
  }
  const pieces: string[] = [];
  let copiedTo = 0;
  for (const passage of found) {
    pieces.push(text.slice(copiedTo, passage.from), passage.text);
    copiedTo = passage.to;
  }
  const edited = pieces.join("") + text.slice(copiedTo);
  return edited === text ? { field: "new_text", problem: "is what the file says already" } : { text: edited };
};

/** Tries the strictest match first. */
const findPassages = (text: string, old_text: string, new_text: string): Passage[] => {
  const finders = [
    () => findExact(text, old_text, new_text),
    () => findExact(text, old_text.replace(/\r?\n/g, "\r\n"), new_text),
    () => findExact(text, old_text.replace(/\r\n/g, "\n"), new_text),
    () => findSimilar(text, old_text, new_text),
    () =>
      findAlike(text, old_text).map((match) => {
        return { from: match.from, to: match.to, text: buildReplacement(text, match, { old_text, new_text }) };
      }),
  ];
  for (const find of finders) {
    const found = find();
    if (found.length > 0) return found.map((passage) => applyLineEndings(text, passage));
  }
  return [];
};

/** Converts the replacement to the line endings of the surrounding lines, because a file may mix line endings. */
const applyLineEndings = (text: string, { from, to, text: replacement }: Passage): Passage => {
  const lineStart = text.slice(from, to).includes("\n") ? from : text.lastIndexOf("\n", from - 1);
  const end = text.indexOf("\n", Math.max(0, lineStart));
  const isCrlf = end > 0 ? text[end - 1] === "\r" : text.includes("\r\n");
  return { from, to, text: replacement.replace(/\r?\n/g, isCrlf ? "\r\n" : "\n") };
};

/** Removes the line numbers from a passage copied from read_file. */
const stripLineNumbers = (passage: string): string => {
  const lines = passage.split("\n");
  const isNumbered = lines.every((line) => line === "" || /^\s*\d+\t/.test(line));
  return isNumbered ? lines.map((line) => line.replace(/^\s*\d+\t/, "")).join("\n") : passage;
};

const findExact = (text: string, passage: string, replacement: string): Passage[] => {
  const found: Passage[] = [];
  for (let from = text.indexOf(passage); from >= 0; from = text.indexOf(passage, from + passage.length)) {
    found.push({ from, to: from + passage.length, text: replacement });
  }
  return found;
};

/**
 * Finds whole lines that differ from the passage only in surrounding whitespace. Adds the same indentation to all lines of the replacement.
 */
const findSimilar = (text: string, passage: string, replacement: string): Passage[] => {
  const endsLine = /\r?\n$/.test(passage);
  const passageLines = passage.replace(/\r?\n$/, "").split(/\r?\n/);
  const trimmedLines = passageLines.map((line) => line.trim());
  if (trimmedLines.every((line) => line === "")) return [];
  const lines = toLines(text);
  const found: Passage[] = [];
  for (let index = 0; index + passageLines.length <= lines.length; index += 1) {
    const window = lines.slice(index, index + passageLines.length);
    if (
      window[0]?.text.trim() !== trimmedLines[0] ||
      !window.every((line, offset) => line.text.trim() === trimmedLines[offset])
    )
      continue;
    const indent = findCommonIndent(
      window.map((line) => line.text),
      passageLines,
    );
    const [first, last] = [window[0], window.at(-1)];
    if (indent === undefined || !first || !last) continue;
    found.push({ from: first.from, to: endsLine ? last.next : last.to, text: indentLines(replacement, indent) });
    index += passageLines.length - 1;
  }
  return found;
};

type Line = { readonly text: string; readonly from: number; readonly to: number; readonly next: number };

const toLines = (text: string): Line[] => {
  const lines: Line[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    const next = end < 0 ? text.length : end + 1;
    const lineText = text.slice(from, end < 0 ? next : end);
    const content = lineText.endsWith("\r") ? lineText.slice(0, -1) : lineText;
    lines.push({ text: content, from, to: from + content.length, next });
    from = next;
  }
  return lines;
};

const getIndent = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? "";

/** Returns the indentation that the file's lines have in addition to the passage's lines; undefined unless it is the same for all lines. */
const findCommonIndent = (lines: readonly string[], passageLines: readonly string[]): string | undefined => {
  let indent: string | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const [fileIndent, passageIndent] = [getIndent(line), getIndent(passageLines[index] ?? "")];
    if (!fileIndent.endsWith(passageIndent)) return undefined;
    const extra = fileIndent.slice(0, fileIndent.length - passageIndent.length);
    if (indent !== undefined && indent !== extra) return undefined;
    indent = extra;
  }
  return indent ?? "";
};

const indentLines = (text: string, indent: string): string =>
  indent === ""
    ? text
    : text
        .split("\n")
        .map((line) => (line.trim() === "" ? line : indent + line))
        .join("\n");
