// Imports the index and its objects from the user's repository, so that the first checkpoint does not have to read every file. Everything
// is copied, and the user's repository is only read (rule UN-2). Used by shadow.ts.
import { copyFile, lstat, readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { log } from "#base/log.ts";
import type { GitOptions } from "../git/scan.ts";
import { BULK_TIMEOUT_MS, type CheckpointGit, type GitFolders, runCheckpointGit, runGitProgram } from "./run.ts";

/** Larger objects are not copied. */
const MAX_OBJECT_BYTES = 16 * 1024 * 1024;
/** Maximum stored size of the objects of one repository. */
const MAX_SEED_BYTES = 4 * 1024 * 1024 * 1024;

const MAX_INDEX_BYTES = 64 * 1024 * 1024;

const GITLINK = "160000";
const ASSUME_UNCHANGED = 0x8000;
const STAGE_MASK = 0x3000;
const INTENT_TO_ADD = 0x2000_0000;
const SKIP_WORKTREE = 0x4000_0000;

/** The user's repository: its hash algorithm, and the paths of its objects and its index. */
export type OwnRepository = { readonly format: string; readonly objects: string; readonly index: string };

type Entry = { readonly path: string; readonly id: string; readonly mode: string; size: number; flags: number };
type Sizes = ReadonlyMap<string, { readonly size: number; readonly stored: number }>;
type OwnIndex = {
  readonly root: string;
  readonly entries: readonly Entry[];
  readonly sizes: Sizes;
  readonly filtered: ReadonlySet<string>;
};
type Git = (args: readonly string[], more?: Partial<CheckpointGit>) => Promise<string>;

/** Returns the user's repository; undefined if this folder is not the root of a git repository, or git refuses to open it. */
export const findOwnRepository = async (options: GitOptions, root: string): Promise<OwnRepository | undefined> => {
  const gitArgs = ["--show-object-format", "--git-path", "objects", "--git-path", "index"];
  const command = ["git", "--no-optional-locks", "rev-parse", "--path-format=absolute", "--show-prefix", ...gitArgs];
  const text = await runGitProgram(options, { command, root, env: {} }).catch(() => undefined);
  const [prefix, format = "", objects = "", index = ""] = text?.split("\n") ?? [];
  return prefix === "" && objects !== "" ? { format, objects, index } : undefined;
};

/** Returns false if the import failed. The index is then empty, and the first checkpoint reads every file. */
export const seedIndex = async (options: GitOptions, folders: GitFolders, own: OwnRepository): Promise<boolean> => {
  const git: Git = (args, more) =>
    runCheckpointGit(options, { ...folders, args, borrowed: own.objects, timeout_ms: BULK_TIMEOUT_MS, ...more });
  try {
    if (!(await copyIndex(own.index, join(folders.gitDirectory, "index")))) return false;
    const entries = await listIndex(git);
    const sizes = await loadSizes(git, [...new Set(entries.map(({ id }) => id))]);
    const filtered = await findFilteredPaths(options, folders.root, entries);
    await correctIndex(git, { root: folders.root, entries, sizes, filtered });
    const tree = (await git(["write-tree", "--missing-ok"])).trim();
    const treeMatches = (await git(["ls-tree", "-r", "-d", "-z", tree])).matchAll(/ tree ([0-9a-f]+)\t/g);
    const trees = [...treeMatches].map(([, id = ""]) => id);
    await copyObjects(git, folders, [tree, ...trees, ...sizes.keys()], sizes);
    return true;
  } catch (error) {
    await rm(join(folders.gitDirectory, "index"), { force: true });
    log("daemon").debug("every file of {root} is read for its first checkpoint: {error}", {
      root: folders.root,
      error,
    });
    return false;
  }
};

/** Copies the index with its modification time, by which git detects later changes. */
const copyIndex = async (from: string, to: string): Promise<boolean> => {
  const stats = await stat(from).catch(() => undefined);
  if (!stats || stats.size > MAX_INDEX_BYTES) return false;
  await copyFile(from, to);
  for (const name of await readdir(dirname(from))) {
    if (name.startsWith("sharedindex.")) await copyFile(join(dirname(from), name), join(dirname(to), basename(name)));
  }
  // Rounded down: reading an unchanged file again is harmless.
  const seconds = Math.floor(stats.mtimeMs) / 1_000;
  await utimes(to, seconds, seconds);
  return true;
};

const listIndex = async (git: Git): Promise<Entry[]> => {
  const outputs: string[] = [];
  await git(["ls-files", "-s", "--debug", "-z"], { onText: (text) => void outputs.push(text) });
  const matches = outputs
    .join("")
    .matchAll(/(\d{6}) ([0-9a-f]+) \d\t([^\0]+)\0(?: {2}.*\n){4} {2}size: (\d+)\tflags: ([0-9a-f]+)\n/g);
  return [...matches].map(([, mode = "", id = "", path = "", size, flags = "0"]) => {
    return { path, id, mode, size: Number(size), flags: Number.parseInt(flags, 16) };
  });
};

/** Loads object sizes by ID; missing objects are skipped. */
const loadSizes = async (git: Git, ids: readonly string[]): Promise<Map<string, { size: number; stored: number }>> => {
  const sizes = new Map<string, { size: number; stored: number }>();
  const format = "--batch-check=%(objectname) %(objectsize) %(objectsize:disk)";
  const text = await git(["cat-file", format], { input: ids.map((id) => `${id}\n`).join("") });
  for (const line of text.split("\n")) {
    const [id = "", size, stored] = line.split(" ");
    if (stored !== undefined) sizes.set(id, { size: Number(size), stored: Number(stored) });
  }
  return sizes;
};

/**
 * Removes entries that do not match the file's content: conflicts, submodules, intent-to-add entries, and files with filters or line-end
 * conversion. Such files are read like new ones.
 */
const correctIndex = async (git: Git, { root, entries, sizes, filtered }: OwnIndex): Promise<void> => {
  const removed = new Set<string>();
  const unmarked: string[] = [];
  const present: string[] = [];
  for (const { path, id, mode, size, flags } of entries) {
    const isSkipped = (flags & SKIP_WORKTREE) !== 0;
    const isConverted = !isSkipped && sizes.has(id) && sizes.get(id)?.size !== size;
    const isUnusable = mode === GITLINK || (flags & (STAGE_MASK | INTENT_TO_ADD)) !== 0;
    if (isUnusable || isConverted || filtered.has(path)) removed.add(path);
    else if (isSkipped && (await lstat(join(root, path)).catch(() => undefined))) present.push(path);
    if (flags & ASSUME_UNCHANGED) unmarked.push(path);
  }
  const input = (paths: Iterable<string>) => ({ input: [...paths].map((path) => `${path}\0`).join("") });
  if (unmarked.length > 0) await git(["update-index", "--no-assume-unchanged", "-z", "--stdin"], input(unmarked));
  if (present.length > 0) await git(["update-index", "--no-skip-worktree", "-z", "--stdin"], input(present));
  if (removed.size > 0) await git(["update-index", "--force-remove", "-z", "--stdin"], input(removed));
};

/** Returns the paths whose content a filter (LFS, encryption) may store in another form of the same size. */
const findFilteredPaths = async (
  options: GitOptions,
  root: string,
  entries: readonly Entry[],
): Promise<ReadonlySet<string>> => {
  const filtered = new Set<string>();
  if (!entries.some(({ path }) => basename(path) === ".gitattributes")) return filtered;
  // Queries the user's repository, because our own attributes disable all filters.
  const command = ["git", "--no-optional-locks", "check-attr", "-z", "--stdin", "filter"];
  const fields: string[] = [];
  let partialField = "";
  await runGitProgram(options, {
    command,
    root,
    env: {},
    input: entries.map(({ path }) => `${path}\0`).join(""),
    onText: (text) => {
      const parts = (partialField + text).split("\0");
      partialField = parts.pop() ?? "";
      fields.push(...parts);
    },
  });
  for (let index = 0; index + 2 < fields.length; index += 3) {
    if (!["unspecified", "unset"].includes(fields[index + 2] ?? "")) filtered.add(fields[index] ?? "");
  }
  return filtered;
};

/** Copies objects that the shared store lacks into a pack. Throws if the store still lacks some of them afterwards. */
const copyObjects = async (git: Git, { objects }: GitFolders, ids: readonly string[], sizes: Sizes): Promise<void> => {
  const missingIds = await listMissing(git, ids);
  const copyableIds = missingIds.filter((id) => (sizes.get(id)?.size ?? 0) <= MAX_OBJECT_BYTES);
  const bytes = copyableIds.reduce((sum, id) => sum + (sizes.get(id)?.stored ?? 0), 0);
  if (bytes > MAX_SEED_BYTES) throw new Error(`its files take more than ${MAX_SEED_BYTES} bytes`);
  if (copyableIds.length === 0) return;
  const input = copyableIds.map((id) => `${id}\n`).join("");
  await git(["pack-objects", "-q", "--window=0", join(objects, "pack", "pack")], { input });
  const stillMissing = await listMissing(git, copyableIds);
  if (stillMissing.length > 0) throw new Error(`${stillMissing.length} objects were not copied`);
};

/** Returns the IDs of objects that the shared store lacks. */
const listMissing = async (git: Git, ids: readonly string[]): Promise<string[]> => {
  const input = ids.map((id) => `${id}\n`).join("");
  const text = await git(["cat-file", "--batch-check=%(objecttype)"], { input, borrowed: undefined });
  return text.split("\n").flatMap((line) => (line.endsWith(" missing") ? [line.slice(0, -" missing".length)] : []));
};
