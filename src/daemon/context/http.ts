// Lists and reads the files of a skill for the daemon's HTTP API (facts/wire 4.1, rule CX-12). Serves only files that are inside
// the skill's folder after resolving paths and links.
import { constants } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import { join, relative } from "node:path";
import { AppError, invalidField, notFound } from "#base/errors.ts";
import type { SkillFile, SkillFiles } from "#schema/agents/agent-context.ts";
import { isInside } from "./file.ts";

const MAX_FILES = 200;
const MAX_DEPTH = 5;
/** Maximum number of bytes of a supporting file; the content after them is omitted (facts/chats 5.1). */
const MAX_FILE_BYTES = 512 * 1024;

/** Returns the paths of regular files in a skill's folder, sorted by name. Skips links. */
export const listSkillFiles = async (folder: string): Promise<SkillFiles> => {
  const root = await realpath(folder).catch(() => undefined);
  if (root === undefined) throw notFound();
  const files: string[] = [];
  let truncated = false;
  const visit = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(directory, entry.name);
      if (entry.isDirectory() && depth < MAX_DEPTH && entry.name !== ".git") await visit(path, depth + 1);
      if (!entry.isFile() || (depth === 0 && entry.name === "SKILL.md")) continue;
      if (files.length >= MAX_FILES) truncated = true;
      else files.push(relative(root, path));
    }
  };
  await visit(root, 0);
  return { files, truncated };
};

/** Returns the beginning of a file in a skill's folder. Rejects with 400 for a file outside of it and 404 for a missing one. */
export const readSkillFile = async (folder: string, path: string): Promise<SkillFile> => {
  const root = await realpath(folder).catch(() => undefined);
  const real = root === undefined ? undefined : await realpath(join(root, path)).catch(() => undefined);
  if (root === undefined) throw notFound();
  if (!isInside(join(root, path), root) || (real !== undefined && !isInside(real, root))) {
    throw invalidField("path", "leads out of the skill's folder");
  }
  if (real === undefined) throw new AppError("not_found", "There is no such file in the skill.");
  const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw invalidField("path", "is not a regular file");
    const bytes = new Uint8Array(MAX_FILE_BYTES);
    let read = 0;
    while (read < MAX_FILE_BYTES) {
      const { bytesRead } = await file.read(bytes, read, MAX_FILE_BYTES - read, read);
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    // With `stream`, the decoder omits a character that the limit cut in two.
    const content = new TextDecoder().decode(bytes.subarray(0, read), { stream: stats.size > read });
    if (content.includes("\0")) throw invalidField("path", "is not a text file");
    return { content, file_size: stats.size, truncated: stats.size > read };
  } finally {
    await file.close();
  }
};
