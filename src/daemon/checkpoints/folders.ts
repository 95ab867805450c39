// Which folders of the workspace a checkpoint covers: the agent's folder, or the repository around it, and every repository inside.
// Finds repositories in ignored folders, which git itself does not list (rule UN-1).
import { lstat, readdir, realpath } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { isThere, readText } from "./shadow.ts";

const MAX_GITFILE_BYTES = 4_096;
const MAX_LOOKED_AT = 500;
const MAX_DEPTH = 2;
/** Where programs put what others have written. */
const SKIPPED = new Set(["node_modules", "vendor", "target", "dist", "build", "venv"]);

/** The folder of the nearest repository around this one, itself included, without links; undefined where none exists. */
export const repositoryAround = async (folder: string): Promise<string | undefined> => {
  for (let place = await realpath(folder); ; place = dirname(place)) {
    if (await isRepository(place)) return place;
    if (dirname(place) === place) return undefined;
  }
};

/** True where `.git` is a repository, or leads to one. What only looks like one (a clone that was cut short, a lost worktree) is a plain folder. */
export const isRepository = async (root: string): Promise<boolean> => {
  const place = await findGitDirectory(root);
  const head = place === undefined ? undefined : await readText(join(place, "HEAD"));
  if (place === undefined || head === undefined || !/^(ref: *refs\/|[0-9a-f]{40})/.test(head)) return false;
  return hasObjects(place);
};

/** The text of `.git` where it is a file. */
export const readGitfile = async (root: string): Promise<string | undefined> => {
  const found = await lstat(join(root, ".git")).catch(() => undefined);
  if (!found?.isFile() || found.size > MAX_GITFILE_BYTES) return undefined;
  return readText(join(root, ".git"));
};

/** Where the text of such a file leads. */
export const gitfileTarget = (root: string, text: string): string | undefined => {
  const path = /^gitdir: (.+)$/m.exec(text)?.[1]?.trim();
  if (path === undefined) return undefined;
  return isAbsolute(path) ? path : join(root, path);
};

/** Repositories in these folders and a little below. */
export const repositoriesBelow = async (folders: readonly string[]): Promise<string[]> => {
  const found: string[] = [];
  let left = MAX_LOOKED_AT;
  const look = async (place: string, depth: number): Promise<void> => {
    left -= 1;
    if (left < 0) return;
    if (await isRepository(place)) {
      found.push(place);
      return;
    }
    if (depth === MAX_DEPTH) return;
    for (const entry of await readdir(place, { withFileTypes: true }).catch(() => [])) {
      if (entry.isDirectory() && isLookedInto(entry.name)) await look(join(place, entry.name), depth + 1);
    }
  };
  for (const folder of folders) await look(folder, 0);
  return found;
};

/** False for folders that are hidden, or full of other people's work. */
export const isLookedInto = (name: string): boolean => !name.startsWith(".") && !SKIPPED.has(name);

const findGitDirectory = async (root: string): Promise<string | undefined> => {
  const text = await readGitfile(root);
  return text === undefined ? join(root, ".git") : gitfileTarget(root, text);
};

/** A worktree has the objects of the repository it belongs to. */
const hasObjects = async (place: string): Promise<boolean> => {
  if (await isThere(join(place, "objects"))) return true;
  const common = await readText(join(place, "commondir"));
  if (common === undefined) return false;
  const path = common.trim();
  return isThere(join(isAbsolute(path) ? path : join(place, path), "objects"));
};
