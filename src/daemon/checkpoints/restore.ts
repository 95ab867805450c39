// Restores one folder from a checkpoint, file by file, even if the folder or repository is missing. Returns the files that could not be
// restored (rules UN-4, UN-6). Used by checkpoints.ts.
import {
  access,
  chmod,
  constants,
  cp,
  lstat,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import type { GitOptions } from "../git/scan.ts";
import { pathExists } from "../path-exists.ts";
import { isRepository, resolveGitfile } from "./folders.ts";
import type { CheckpointFolder } from "./records.ts";
import { BULK_TIMEOUT_MS } from "./run.ts";
import { findOwnRepository } from "./seed.ts";
import { isReadable, joinNul, MAX_FILE_BYTES, type ShadowGit, splitNul } from "./shadow.ts";

const GITLINK = "160000";

/** The number of restored files, and descriptions of the files that could not be restored. */
export type FolderRestored = { readonly restored: number; readonly left_out: readonly string[] };
/** `ids`: object IDs of the files to write, by path. `remove`: paths of the files to remove. */
type Changes = { readonly ids: ReadonlyMap<string, string>; readonly remove: ReadonlySet<string> };

/**
 * `without`: folders below the root that have their own checkpoint, as paths relative to the root. `removed`: the folder to which files
 * created after the checkpoint are moved.
 */
export type RestoreScope = { readonly without: readonly string[]; readonly removed: string };

export class FolderRestore {
  readonly #options: GitOptions;
  readonly #shadow: ShadowGit;
  readonly #folder: CheckpointFolder;
  readonly #excluded: readonly string[];
  readonly #removed: string;
  readonly #skipped: string[] = [];
  #objects: string | undefined;

  constructor(options: GitOptions, shadow: ShadowGit, folder: CheckpointFolder, { without, removed }: RestoreScope) {
    this.#removed = removed;
    this.#options = options;
    this.#shadow = shadow;
    this.#folder = folder;
    this.#excluded = without;
  }

  async run(): Promise<FolderRestored> {
    const { root } = this.#folder;
    await mkdir(root, { recursive: true });
    if ((await realpath(root)) !== root) throw new Error("a link is in its place");
    await this.#restoreGitfile();
    const isRepositoryMissing = this.#folder.kind === "repository" && !(await isRepository(root));
    if (isRepositoryMissing)
      this.#skipped.push(`the repository in ${join(root, ".git")} (commits are not part of a checkpoint)`);
    await this.#shadow.prepare();
    await this.#shadow.addExclude();
    // Files that were too large to copy are read from the repository's own objects, if it still has them.
    if (this.#folder.kind === "repository") this.#objects = (await findOwnRepository(this.#options, root))?.objects;
    const { ids, remove } = await this.#listChanges();
    const files = await this.#findWritable(ids, remove);
    const removed = await this.#remove(remove);
    const written = (await this.#write(files)) + (await this.#restoreModes(new Set(files)));
    for (const { path, reason } of this.#folder.skipped) {
      if (!(await pathExists(join(root, path)))) this.#skip(path, reason);
    }
    return { restored: removed + written, left_out: this.#skipped };
  }

  /** Reconnects a submodule or worktree to its repository, if the repository still exists. */
  async #restoreGitfile(): Promise<void> {
    const { root, gitfile } = this.#folder;
    const target = gitfile === undefined ? undefined : resolveGitfile(root, gitfile);
    if (gitfile === undefined || target === undefined || !(await pathExists(target))) return;
    if (!(await lstat(join(root, ".git")).catch(() => undefined))) await writeFile(join(root, ".git"), gitfile);
  }

  /**
   * Finds the changes from file names and times, without reading file contents: current files against the last capture, and the last
   * capture against the checkpoint.
   */
  async #listChanges(): Promise<Changes> {
    const { tree } = this.#folder;
    const { others, changed } = await this.#shadow.list(this.#excluded);
    const wantedFiles = await this.#listFiles(tree);
    const captured = await this.#listFiles(await this.#shadow.writeIndexTree());
    const ids = new Map<string, string>();
    for (const [path, file] of wantedFiles) if (captured.get(path) !== file) ids.set(path, toId(file));
    for (const path of [...changed, ...others]) {
      const file = wantedFiles.get(path);
      if (file !== undefined) ids.set(path, toId(file));
    }
    const added = [...others, ...captured.keys()].filter((path) => !wantedFiles.has(path));
    return { ids, remove: await this.#findRemovable(added, wantedFiles) };
  }

  /** Returns mode and object ID by path. */
  async #listFiles(tree: string): Promise<Map<string, string>> {
    const files = new Map<string, string>();
    let partialRecord = "";
    await this.#shadow.git(["ls-tree", "-r", "-z", tree], {
      timeout_ms: BULK_TIMEOUT_MS,
      onText: (text) => {
        const records = (partialRecord + text).split("\0");
        partialRecord = records.pop() ?? "";
        for (const record of records) {
          const tab = record.indexOf("\t");
          const [mode = "", , id = ""] = record.slice(0, tab).split(" ");
          if (mode !== GITLINK) files.set(record.slice(tab + 1), `${mode} ${id}`);
        }
      },
    });
    return files;
  }

  /**
   * Returns the files created after the checkpoint. Leaves out folders that have their own checkpoint, large files, and files that are or
   * were ignored.
   */
  async #findRemovable(added: readonly string[], wanted: ReadonlyMap<string, string>): Promise<Set<string>> {
    const removable = new Set<string>();
    // Skipped files existed at the checkpoint, so they are not new.
    const skipped = new Set(this.#folder.skipped.map(({ path }) => path));
    for (const path of added) {
      if (skipped.has(path) || this.#excluded.some((folder) => path.startsWith(`${folder}/`))) continue;
      if (await this.#isRemovable(path)) removable.add(path);
    }
    if (removable.size === 0) return removable;
    // Files that a later checkpoint captured may be ignored now.
    for (const path of await this.#findIgnored(this.#folder.root, [...removable])) removable.delete(path);
    const rules = [...wanted.keys()].filter((path) => path === ".gitignore" || path.endsWith("/.gitignore"));
    if (rules.length === 0) return removable;
    for (const path of await this.#findFormerlyIgnored(rules, [...removable])) removable.delete(path);
    return removable;
  }

  /** Returns false for files that no checkpoint would capture. */
  async #isRemovable(path: string): Promise<boolean> {
    const file = join(this.#folder.root, path);
    const existing = await lstat(file).catch(() => undefined);
    if (!existing || existing.isDirectory() || existing.size > MAX_FILE_BYTES) return false;
    return existing.isSymbolicLink() || (await isReadable(file));
  }

  /** Returns the paths that the rules below `root` ignore. Returns all of them if git fails, so that none is removed. */
  async #findIgnored(root: string, paths: readonly string[]): Promise<readonly string[]> {
    const args = ["check-ignore", "--no-index", "-z", "--stdin"];
    try {
      // Exit code 1: no path is ignored.
      return splitNul(await this.#shadow.git(args, { input: joinNul(paths), root, acceptedCodes: [1] }));
    } catch (error) {
      log("daemon").warn("nothing is removed from {root}: {error}", { root, error });
      return paths;
    }
  }

  /** Returns the paths that the checkpoint's ignore rules match: rules deleted after the checkpoint still protect files. */
  async #findFormerlyIgnored(rules: readonly string[], paths: readonly string[]): Promise<readonly string[]> {
    const rulesFolder = join(this.#shadow.folders.gitDirectory, `rules-${uuid()}`);
    await mkdir(rulesFolder);
    try {
      await this.#checkout(rules, rulesFolder);
      return await this.#findIgnored(rulesFolder, paths);
    } finally {
      await rm(rulesFolder, { recursive: true, force: true });
    }
  }

  /** Returns the files that can be written: their content is stored, and nothing blocks their path. */
  async #findWritable(ids: ReadonlyMap<string, string>, remove: ReadonlySet<string>): Promise<string[]> {
    if (ids.size === 0) return [];
    const input = [...new Set(ids.values())].map((id) => `${id}\n`).join("");
    const text = await this.#runGit(["cat-file", "--batch-check=%(objecttype)"], { input });
    const missing = new Set([...text.matchAll(/^([0-9a-f]+) missing$/gm)].map(([, id]) => id));
    const files: string[] = [];
    for (const [path, id] of ids) {
      const problem = missing.has(id) ? "it was too large to be kept" : await this.#findObstacle(path, remove);
      if (problem === undefined) files.push(path);
      else this.#skip(path, problem);
    }
    return files;
  }

  /** Returns the reason why the path cannot be written, if any. */
  async #findObstacle(path: string, removedPaths: ReadonlySet<string>): Promise<string | undefined> {
    const { root } = this.#folder;
    const parts = path.split("/");
    for (let count = 1; count < parts.length; count++) {
      const ancestor = parts.slice(0, count).join("/");
      const found = await lstat(join(root, ancestor)).catch(() => undefined);
      if (!found || removedPaths.has(ancestor)) return undefined;
      if (!found.isDirectory()) return `${join(root, ancestor)} is in the way`;
    }
    const isWritable = await access(join(root, dirname(path)), constants.W_OK).then(
      () => true,
      () => false,
    );
    if (!isWritable) return "its folder cannot be written to";
    const existing = await lstat(join(root, path)).catch(() => undefined);
    if (!existing?.isDirectory()) return undefined;
    const childEntries = await readdir(join(root, path), { recursive: true, withFileTypes: true });
    const keptEntry = childEntries.find(
      (one) => !one.isDirectory() && !removedPaths.has(join(one.parentPath, one.name).slice(root.length + 1)),
    );
    return keptEntry ? "a folder with files that are not kept is in its place" : undefined;
  }

  /** Moves files away instead of deleting them: a program unrelated to the chat may have created them. */
  async #remove(paths: ReadonlySet<string>): Promise<number> {
    const { root } = this.#folder;
    let count = 0;
    for (const path of paths) {
      try {
        await moveToRemoved(join(root, path), join(this.#removed, root, path));
        count += 1;
      } catch (error) {
        this.#skip(path, `it cannot be removed: ${(error as Error).message}`);
      }
      for (let folder = dirname(path); folder !== "."; folder = dirname(folder)) {
        const isEmpty = await rmdir(join(root, folder)).then(
          () => true,
          () => false,
        );
        if (!isEmpty) break;
      }
    }
    return count;
  }

  async #write(paths: readonly string[]): Promise<number> {
    if (paths.length === 0) return 0;
    const { root, modes } = this.#folder;
    const failed = new Set(await this.#checkout(paths, root));
    for (const path of paths) {
      if (failed.has(path)) this.#skip(path, "it could not be written");
      else if (modes[path] !== undefined) await chmod(join(root, path), modes[path]);
    }
    return paths.length - failed.size;
  }

  /**
   * Restores the permissions of files that were not written, and returns how many changed. Git detects a mode change by the file's change
   * time in seconds, so it misses one made in the same second as the checkpoint.
   */
  async #restoreModes(written: ReadonlySet<string>): Promise<number> {
    let count = 0;
    for (const [path, mode] of Object.entries(this.#folder.modes)) {
      if (written.has(path)) continue;
      const file = join(this.#folder.root, path);
      const existing = await lstat(file).catch(() => undefined);
      if (!existing?.isFile() || (existing.mode & 0o777) === mode) continue;
      await chmod(file, mode).then(
        () => count++,
        () => this.#skip(path, "its permissions could not be set"),
      );
    }
    return count;
  }

  /** Writes these files of the checkpoint below `root` and returns the paths that still differ. */
  async #checkout(paths: readonly string[], root: string): Promise<string[]> {
    const index = join(this.#shadow.folders.gitDirectory, `index-${uuid()}`);
    const checkoutOptions = { index, root, timeout_ms: BULK_TIMEOUT_MS };
    try {
      await this.#runGit(["read-tree", this.#folder.tree], checkoutOptions);
      // A file that cannot be written must not prevent the others.
      await this.#runGit(["checkout-index", "-f", "-u", "-z", "--stdin"], { input: joinNul(paths), index, root }).catch(
        () => {},
      );
      const wantedFiles = new Set(paths);
      const text = await this.#runGit(["diff-files", "-z", "--name-only", "--ignore-submodules=all"], checkoutOptions);
      return splitNul(text).filter((path) => wantedFiles.has(path));
    } finally {
      await rm(index, { force: true });
    }
  }

  #runGit(args: readonly string[], gitOptions: Parameters<ShadowGit["git"]>[1]): Promise<string> {
    return this.#shadow.git(
      args,
      this.#objects === undefined ? gitOptions : { borrowed: this.#objects, ...gitOptions },
    );
  }

  #skip(path: string, reason: string): void {
    this.#skipped.push(`${join(this.#folder.root, path)} (${reason})`);
  }
}

const moveToRemoved = async (from: string, to: string): Promise<void> => {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as { code?: string }).code !== "EXDEV") throw error;
    await cp(from, to, { preserveTimestamps: true, verbatimSymlinks: true });
    await rm(from, { force: true });
  }
};

const toId = (file: string): string => file.slice(file.indexOf(" ") + 1);
