// Lines of an instruction file that import another one (`@style.md`, alone in its line or in a list): the file's text stands in their
// place. Regular files inside the root alone, never more than the limit in all, and no deeper than a few files (rule CX-15).
import { dirname, isAbsolute, join } from "node:path";
import { decodeText, readContextFile } from "./file.ts";

const MAX_DEPTH = 5;
const MAX_FILES = 50;
const IMPORT = /^(?:\s*[-*+]\s+|\s*)@(\S+)\s*$/;
const FENCE = /^\s*(```|~~~)/;

/** `problem`: what was left out; empty when nothing was. `folders`: those of the imported files, without links. */
export type Imported = { readonly body: string; readonly problem: string; readonly folders: readonly string[] };

type Of = { readonly source: string; readonly root: string; readonly limit: number };

/** Returns the text with its imports. A line that names no file stays as it is. */
export const withImports = async (text: string, { source, root, limit }: Of): Promise<Imported> => {
  const problems: string[] = [];
  const folders = new Set<string>();
  let left = limit - Buffer.byteLength(text);
  let files = 0;

  const expand = async (body: string, from: string, above: readonly string[]): Promise<string> => {
    const lines: string[] = [];
    let isFenced = false;
    for (const line of body.split("\n")) {
      if (FENCE.test(line)) isFenced = !isFenced;
      const path = isFenced ? undefined : IMPORT.exec(line)?.[1];
      lines.push((path === undefined ? undefined : await imported(path, from, above)) ?? line);
    }
    return lines.join("\n");
  };

  /** Undefined for a line that stays as it is. */
  const imported = async (path: string, from: string, above: readonly string[]): Promise<string | undefined> => {
    const file = await readContextFile(resolvePlace(path, dirname(from)), root, limit);
    if (!file) return undefined;
    if (file.status !== "ok") {
      problems.push(`@${path} ${file.error}`);
      return undefined;
    }
    // A file that imports itself says nothing new.
    if (above.includes(file.real)) return "";
    const body = decodeText(file.bytes)
      .replace(/^\uFEFF/, "")
      .trimEnd();
    const size = Buffer.byteLength(body);
    files += 1;
    if (size > left || files > MAX_FILES || above.length > MAX_DEPTH) {
      problems.push(`@${path} is left out: ${size > left ? `more than ${limit} bytes in all` : "too many imports"}`);
      return undefined;
    }
    left -= size;
    folders.add(dirname(file.real));
    return expand(body, file.real, [...above, file.real]);
  };

  const body = await expand(text, source, [source]);
  return { body, problem: problems.join("; "), folders: [...folders] };
};

const resolvePlace = (path: string, folder: string): string => (isAbsolute(path) ? path : join(folder, path));
