// Finds the repositories of the paths that tools name (facts/chats 2.11, rule GS-1): the nearest folder with a `.git` at or above a path
// and, for shell commands, the folders named in the command.
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { pathExists } from "../path-exists.ts";

const MAX_WORDS = 64;

/** Returns the root of the repository that contains the path; undefined if none exists. The path need not exist. */
export const findRepository = async (path: string): Promise<string | undefined> => {
  let folder = await findExistingAncestor(path);
  for (;;) {
    if (await pathExists(join(folder, ".git"))) return folder;
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
};

export const isRepository = (root: string): Promise<boolean> => pathExists(join(root, ".git"));

/**
 * Returns the folders that a command may work in: its working directory, folders that it names, and the folder that a `git clone` creates.
 */
export const findCommandFolders = (command: string, directory: string): string[] => {
  const words = command.split(/[\s;&|()<>]+/).slice(0, MAX_WORDS);
  const named = words.flatMap((word) => {
    const unquoted = word.replaceAll(/^["']|["']$/g, "");
    if (unquoted === "" || unquoted.startsWith("-") || unquoted.length > 1_024) return [];
    const isAddress = /^[a-z+]+:\/\/|^[\w.-]+@[\w.-]+:/i.test(unquoted);
    const local = isAddress ? [] : [isAbsolute(unquoted) ? unquoted : join(directory, unquoted)];
    // A clone's folder is named after its source.
    return /[/:]/.test(unquoted) ? [...local, join(directory, basename(unquoted, ".git"))] : local;
  });
  return [...new Set([directory, ...named])];
};

/** Returns the paths that are existing folders. */
export const filterFolders = async (paths: readonly string[]): Promise<string[]> => {
  const folders = await Promise.all(
    paths.map(async (path) => ((await stat(path).catch(() => undefined))?.isDirectory() ? [path] : [])),
  );
  return folders.flat();
};

/** Returns the nearest existing ancestor of the path, with links resolved. */
const findExistingAncestor = async (path: string): Promise<string> => {
  for (let folder = path; ; folder = dirname(folder)) {
    const resolved = await realpath(folder).catch(() => undefined);
    if (resolved !== undefined) return resolved;
    if (dirname(folder) === folder) return folder;
  }
};
