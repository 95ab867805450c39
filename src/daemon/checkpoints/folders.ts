// Finds the folders of the workspace that a checkpoint covers: the agent's folder, or the repository that contains it, and every repository
// inside. Also finds repositories in ignored folders, which git does not list (rule UN-1).
import { lstat, readdir, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { readRegularText } from "#base/system/regular-file.ts";
import { pathExists } from "../path-exists.ts";

const MAX_GITFILE_BYTES = 4_096;
const MAX_VISITED_FOLDERS = 500;
const MAX_DEPTH = 2;
/** Folders that usually contain dependencies or build output. */
const SKIPPED_FOLDERS = new Set(["node_modules", "vendor", "target", "dist", "build", "venv"]);

/** Returns the nearest repository folder at or above this one, with symbolic links resolved; undefined if none exists. */
export const findEnclosingRepository = async (folder: string): Promise<string | undefined> => {
  for (let real = await realpath(folder); ; real = dirname(real)) {
    if (await isRepository(real)) return real;
    if (dirname(real) === real) return undefined;
  }
};

/**
 * Returns true if `.git` is a repository or points to one. A folder that only resembles a repository (an interrupted clone, a lost
 * worktree) is treated as a plain folder.
 */
export const isRepository = async (root: string): Promise<boolean> => {
  const gitDirectory = await findGitDirectory(root);
  const head = gitDirectory === undefined ? undefined : readRegularText(join(gitDirectory, "HEAD"));
  if (gitDirectory === undefined || head === undefined || !/^(ref: *refs\/|[0-9a-f]{40})/.test(head)) return false;
  return hasObjects(gitDirectory);
};

/** Returns the text of `.git` if it is a file. */
export const readGitfile = async (root: string): Promise<string | undefined> => {
  const stats = await lstat(join(root, ".git")).catch(() => undefined);
  if (!stats?.isFile() || stats.size > MAX_GITFILE_BYTES) return undefined;
  return readRegularText(join(root, ".git"));
};

/** Returns the path that the text of a `.git` file points to. */
export const resolveGitfile = (root: string, text: string): string | undefined => {
  const path = /^gitdir: (.+)$/m.exec(text)?.[1]?.trim();
  if (path === undefined) return undefined;
  return isAbsolute(path) ? path : join(root, path);
};

/** Finds repositories in these folders and a few levels below. */
export const findNestedRepositories = async (folders: readonly string[]): Promise<string[]> => {
  const found: string[] = [];
  let remainingVisits = MAX_VISITED_FOLDERS;
  const visit = async (folder: string, depth: number): Promise<void> => {
    remainingVisits -= 1;
    if (remainingVisits < 0) return;
    if (await isRepository(folder)) {
      found.push(folder);
      return;
    }
    if (depth === MAX_DEPTH) return;
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      if (entry.isDirectory() && isSearchable(entry.name)) await visit(join(folder, entry.name), depth + 1);
    }
  };
  for (const folder of folders) await visit(folder, 0);
  return found;
};

/** Returns false for hidden folders and folders of dependencies or build output. */
export const isSearchable = (name: string): boolean => !name.startsWith(".") && !SKIPPED_FOLDERS.has(name);

const findGitDirectory = async (root: string): Promise<string | undefined> => {
  const text = await readGitfile(root);
  return text === undefined ? join(root, ".git") : resolveGitfile(root, text);
};

/** Returns true if the git directory has objects. A worktree uses the objects of its main repository. */
const hasObjects = async (folder: string): Promise<boolean> => {
  if (await pathExists(join(folder, "objects"))) return true;
  const common = readRegularText(join(folder, "commondir"));
  if (common === undefined) return false;
  const path = common.trim();
  return pathExists(join(isAbsolute(path) ? path : join(folder, path), "objects"));
};
