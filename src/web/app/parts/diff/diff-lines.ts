// Parses a unified diff into numbered lines. Pure.
import { escapeInvisible } from "#base/visible-text.ts";

export type DiffLine = {
  readonly kind: "add" | "del" | "same" | "hunk";
  /** The line's number before and after the change. */
  readonly before?: number;
  readonly after?: number;
  readonly text: string;
  /** The range in `text` that differs from the line it replaces, if lines correspond one to one. */
  readonly mark?: readonly [from: number, to: number];
};

export type FileDiff = {
  readonly path: string;
  readonly kind: "new" | "deleted" | "renamed" | "changed";
  readonly added: number;
  readonly removed: number;
  readonly lines: readonly DiffLine[];
};

/** Returns one entry for each file of a diff in git's format, with or without its `diff --git` lines. */
export const parseFiles = (diff: string): readonly FileDiff[] => {
  const files: { head: string[]; lines: DiffLine[] }[] = [];
  let oldNumber = 0;
  let newNumber = 0;
  // Remaining lines of the hunk: lines within it that look like a file header are content.
  let [oldLeft, newLeft] = [0, 0];
  for (const line of diff.split("\n")) {
    let file = files.at(-1);
    if (oldLeft <= 0 && newLeft <= 0) {
      const isHead = line.startsWith("diff --git ");
      const isBareHead = line.startsWith("--- ") && (!file || file.lines.length > 0);
      if (isHead || isBareHead) {
        files.push({ head: [line], lines: [] });
        continue;
      }
    }
    file = files.at(-1);
    if (!file) continue;
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (hunk && oldLeft <= 0 && newLeft <= 0) {
      [oldNumber, newNumber] = [Number(hunk[1]), Number(hunk[3])];
      [oldLeft, newLeft] = [Number(hunk[2] ?? 1), Number(hunk[4] ?? 1)];
      file.lines.push({ kind: "hunk", text: line });
    } else if (oldLeft <= 0 && newLeft <= 0) file.head.push(line);
    else if (line.startsWith("+")) {
      file.lines.push({ kind: "add", after: newNumber++, text: line.slice(1) });
      newLeft -= 1;
    } else if (line.startsWith("-")) {
      file.lines.push({ kind: "del", before: oldNumber++, text: line.slice(1) });
      oldLeft -= 1;
    } else if (!line.startsWith("\\")) {
      file.lines.push({ kind: "same", before: oldNumber++, after: newNumber++, text: line.slice(1) });
      oldLeft -= 1;
      newLeft -= 1;
    }
  }
  return files.map(({ head, lines }) => toFile(head, lines));
};

const toFile = (head: readonly string[], lines: readonly DiffLine[]): FileDiff => {
  const findHeader = (start: string): string | undefined =>
    head.find((line) => line.startsWith(start))?.slice(start.length);
  const stripPrefix = (path: string | undefined): string | undefined =>
    path === undefined || path === "/dev/null" ? undefined : path.replace(/\t[\s\S]*/, "").replace(/^[ab]\//, "");
  const [from, to] = [findHeader("--- "), findHeader("+++ ")];
  const path =
    stripPrefix(to) ?? stripPrefix(from) ?? findHeader("rename to ") ?? / b\/([\s\S]*)/.exec(head[0] ?? "")?.[1] ?? "";
  const isNew = from === "/dev/null" || findHeader("new file mode ") !== undefined;
  const isDeleted = to === "/dev/null" || findHeader("deleted file mode ") !== undefined;
  const isRenamed = findHeader("rename to ") !== undefined;
  return {
    path,
    kind: isNew ? "new" : isDeleted ? "deleted" : isRenamed ? "renamed" : "changed",
    added: lines.filter(({ kind }) => kind === "add").length,
    removed: lines.filter(({ kind }) => kind === "del").length,
    lines: markChanges(lines),
  };
};

/** If runs of removed and added lines are equally long, pairs the lines and marks the differences within each pair. */
const markChanges = (lines: readonly DiffLine[]): readonly DiffLine[] => {
  const marked = [...lines];
  for (let index = 0; index < marked.length; ) {
    const start = index;
    while (marked[index]?.kind === "del") index += 1;
    const middle = index;
    while (marked[index]?.kind === "add") index += 1;
    const count = middle - start;
    if (count > 0 && index - middle === count) {
      for (let n = 0; n < count; n++) markPair(marked, start + n, middle + n);
    }
    if (index === start) index += 1;
  }
  return marked;
};

const markPair = (lines: DiffLine[], removedIndex: number, addedIndex: number): void => {
  const [removed, added] = [lines[removedIndex], lines[addedIndex]];
  if (!removed || !added) return;
  const [a, b] = [removed.text, added.text];
  const shortest = Math.min(a.length, b.length);
  let start = 0;
  while (start < shortest && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < shortest - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  // Lines with almost nothing in common are not versions of each other.
  if ((start + end) * 3 < shortest) return;
  lines[removedIndex] = { ...removed, mark: [start, a.length - end] };
  lines[addedIndex] = { ...added, mark: [start, b.length - end] };
};

/**
 * Returns the text of a line as it is shown: before its marked range, the range, and after it. Hidden characters are visible, because a
 * person approves what the line says; the first half of a CRLF line end is left out.
 */
export const toShownPieces = ({ text, mark }: DiffLine): readonly [before: string, changed: string, after: string] => {
  const end = text.endsWith("\r") ? text.length - 1 : text.length;
  const [from, to] = mark ?? [end, end];
  const escapeRange = (start: number, stop: number): string => escapeInvisible(text.slice(start, stop));
  return from === to
    ? [escapeRange(0, end), "", ""]
    : [escapeRange(0, from), escapeRange(from, to), escapeRange(to, end)];
};
