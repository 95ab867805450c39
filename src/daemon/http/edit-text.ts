// Replaces a passage of a text, forgiving what models get wrong: line endings, blanks at the ends of lines, and indentation. What is
// exact comes first; nothing is replaced when the passage is not there or not unique. Pure.
import type { EditFiles } from "#schema/agents/agent-files.ts";

type Edit = EditFiles["files"][number]["edits"][number];
type Passage = { readonly from: number; readonly to: number; readonly indent: string };

/** The text after the edit, or why it does not fit. */
export const applyEdit = (text: string, edit: Edit): { text: string } | { problem: string } => {
  const isCrlf = text.includes("\r\n");
  const native = (part: string): string => (isCrlf ? part.replace(/\r?\n/g, "\r\n") : part.replace(/\r\n/g, "\n"));
  const { old_text, new_text, replace_all = false } = edit;
  let found = exact(text, old_text);
  let replacement = new_text;
  if (found.length === 0) {
    found = exact(text, native(old_text));
    if (found.length === 0) found = similar(text, old_text);
  }
  if (isCrlf) replacement = native(new_text);
  if (found.length === 0) return { problem: "is not in the file" };
  if (found.length > 1 && !replace_all) return { problem: `is in the file ${found.length} times` };
  const pieces: string[] = [];
  let at = 0;
  for (const { from, to, indent } of found) {
    pieces.push(text.slice(at, from), reindented(replacement, indent));
    at = to;
  }
  pieces.push(text.slice(at));
  return { text: pieces.join("") };
};

const exact = (text: string, passage: string): Passage[] => {
  const found: Passage[] = [];
  for (let from = text.indexOf(passage); from >= 0; from = text.indexOf(passage, from + passage.length)) {
    found.push({ from, to: from + passage.length, indent: "" });
  }
  return found;
};

/** Whole lines that say the same but for blanks around them; all of them moved in by the same indentation. */
const similar = (text: string, passage: string): Passage[] => {
  const endsLine = /\r?\n$/.test(passage);
  const wanted = passage.replace(/\r?\n$/, "").split(/\r?\n/);
  const bare = wanted.map((line) => line.trim());
  if (bare.every((line) => line === "")) return [];
  const lines = linesOf(text);
  const found: Passage[] = [];
  for (let index = 0; index + wanted.length <= lines.length; index += 1) {
    const window = lines.slice(index, index + wanted.length);
    if (window[0]?.text.trim() !== bare[0] || !window.every((line, at) => line.text.trim() === bare[at])) continue;
    const indent = commonIndent(
      window.map((line) => line.text),
      wanted,
    );
    const [first, last] = [window[0], window.at(-1)];
    if (indent === undefined || !first || !last) continue;
    found.push({ from: first.from, to: endsLine ? last.next : last.to, indent });
    index += wanted.length - 1;
  }
  return found;
};

type Line = { readonly text: string; readonly from: number; readonly to: number; readonly next: number };

const linesOf = (text: string): Line[] => {
  const lines: Line[] = [];
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf("\n", from);
    const next = end < 0 ? text.length : end + 1;
    const bare = text.slice(from, end < 0 ? next : end);
    const kept = bare.endsWith("\r") ? bare.slice(0, -1) : bare;
    lines.push({ text: kept, from, to: from + kept.length, next });
    from = next;
  }
  return lines;
};

const leading = (line: string): string => /^[ \t]*/.exec(line)?.[0] ?? "";

/** What the file's lines have before the passage's own indentation: the same for all, else they do not fit. */
const commonIndent = (lines: readonly string[], wanted: readonly string[]): string | undefined => {
  let indent: string | undefined;
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const [has, asked] = [leading(line), leading(wanted[index] ?? "")];
    if (!has.endsWith(asked)) return undefined;
    const extra = has.slice(0, has.length - asked.length);
    if (indent !== undefined && indent !== extra) return undefined;
    indent = extra;
  }
  return indent ?? "";
};

const reindented = (text: string, indent: string): string =>
  indent === ""
    ? text
    : text
        .split("\n")
        .map((line) => (line.trim() === "" ? line : indent + line))
        .join("\n");
