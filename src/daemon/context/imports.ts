// Expands the lines of an instruction file that import another file (`@style.md`, alone on a line or in a list). Imports only regular files
// inside the root, with a limit on total size and depth (rule CX-15).
import { dirname, isAbsolute, join } from "node:path";
import { decodeText, readContextFile } from "./file.ts";

const MAX_DEPTH = 5;
const MAX_FILES = 50;
const IMPORT_LINE = /^(?:\s*[-*+]\s+|\s*)@(\S+)\s*$/;
const FENCE_LINE = /^\s*(```|~~~)/;

/**
 * `problem`: the imports that were left out, and why; empty if all were included. `folders`: the folders of the imported files, with links
 * resolved.
 */
export type ExpandedImports = { readonly body: string; readonly problem: string; readonly folders: readonly string[] };

type ImportScope = { readonly source: string; readonly root: string; readonly limit: number };

/** Returns the text with its imports expanded. A line that names no file is kept unchanged. */
export const expandImports = async (text: string, { source, root, limit }: ImportScope): Promise<ExpandedImports> => {
  const problems: string[] = [];
  const folders = new Set<string>();
  let remainingBytes = limit - Buffer.byteLength(text);
  let fileCount = 0;

  const expand = async (body: string, from: string, ancestors: readonly string[]): Promise<string> => {
    const lines: string[] = [];
    let isFenced = false;
    for (const line of body.split("\n")) {
      if (FENCE_LINE.test(line)) isFenced = !isFenced;
      const path = isFenced ? undefined : IMPORT_LINE.exec(line)?.[1];
      lines.push((path === undefined ? undefined : await expandLine(path, from, ancestors)) ?? line);
    }
    return lines.join("\n");
  };

  /** Returns undefined for a line that is kept unchanged. */
  const expandLine = async (path: string, from: string, ancestors: readonly string[]): Promise<string | undefined> => {
    const file = await readContextFile(resolvePath(path, dirname(from)), root, limit);
    if (!file) return undefined;
    if (file.status !== "ok") {
      problems.push(`@${path} ${file.error}`);
      return undefined;
    }
    // A file that imports itself adds nothing.
    if (ancestors.includes(file.real)) return "";
    const body = decodeText(file.bytes)
      .replace(/^\uFEFF/, "")
      .trimEnd();
    const size = Buffer.byteLength(body);
    fileCount += 1;
    if (size > remainingBytes || fileCount > MAX_FILES || ancestors.length > MAX_DEPTH) {
      problems.push(
        `@${path} is left out: ${size > remainingBytes ? `more than ${limit} bytes in all` : "too many imports"}`,
      );
      return undefined;
    }
    remainingBytes -= size;
    folders.add(dirname(file.real));
    return expand(body, file.real, [...ancestors, file.real]);
  };

  const body = await expand(text, source, [source]);
  return { body, problem: problems.join("; "), folders: [...folders] };
};

const resolvePath = (path: string, folder: string): string => (isAbsolute(path) ? path : join(folder, path));
