// Finds the repositories of the paths that tools name (facts/chats 2.11, rule GS-1): the folder with a `.git` around a path and, for shell
// commands, the folders named in the command.
import { access, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";

const MAX_WORDS = 64;

/** Returns the root of the repository that contains the path; undefined if none exists. The path need not exist. */
export const findRepository = async (path: string): Promise<string | undefined> => {
  let folder = await keepExisting(path);
  for (;;) {
    if (await pathExists(join(folder, ".git"))) return folder;
    const above = dirname(folder);
    if (above === folder) return undefined;
    folder = above;
  }
};

export const isRepository = (root: string): Promise<boolean> => pathExists(join(root, ".git"));

/**
 * Returns the folders that a command may work in: its working directory, folders that it names, and the folder that a `git clone` creates.
 */
export const findCommandFolders = (command: string, directory: string): string[] => {
  const words = command.split(/[\s;&|()<>]+/).slice(0, MAX_WORDS);
  const named = words.flatMap((word) => {
    const plain = word.replaceAll(/^["']|["']$/g, "");
    if (plain === "" || plain.startsWith("-") || plain.length > 1_024) return [];
    const isAddress = /^[a-z+]+:\/\/|^[\w.-]+@[\w.-]+:/i.test(plain);
    const local = isAddress ? [] : [isAbsolute(plain) ? plain : join(directory, plain)];
    // A clone's folder is named after its source.
    return /[/:]/.test(plain) ? [...local, join(directory, basename(plain, ".git"))] : local;
  });
  return [...new Set([directory, ...named])];
};

/** Returns the paths that are existing folders. */
export const filterFolders = async (paths: readonly string[]): Promise<string[]> => {
  const found = await Promise.all(
    paths.map(async (path) => ((await stat(path).catch(() => undefined))?.isDirectory() ? [path] : [])),
  );
  return found.flat();
};

/** Returns the nearest existing ancestor of the path, with links resolved. */
const keepExisting = async (path: string): Promise<string> => {
  for (let folder = path; ; folder = dirname(folder)) {
    const found = await realpath(folder).catch(() => undefined);
    if (found !== undefined) return found;
    if (dirname(folder) === folder) return folder;
  }
};

const pathExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
