// Captures one folder of the workspace with a private git directory. The user's repository, index and branches are only read, and captures
// do not depend on them (rules UN-1 to UN-4). The number of files and bytes is limited. Used by checkpoints.ts and restore.ts.
import { constants } from "node:fs";
import { access, appendFile, lstat, mkdir, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { conflict } from "#base/errors.ts";
import { readRegularText } from "#base/system/regular-file.ts";
import type { GitOptions } from "../git/scan.ts";
import { pathExists } from "../path-exists.ts";
import { ModeList } from "./modes.ts";
import { BULK_TIMEOUT_MS, type CheckpointGit, type GitFolders, runCheckpointGit } from "./run.ts";
import { findOwnRepository, seedIndex } from "./seed.ts";

const MAX_PATHS = 100_000;
const MAX_BYTES = 1024 * 1024 * 1024;
/** Larger files are neither captured nor touched. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024;
/** Minimum free disk space after a checkpoint. */
const MIN_FREE_BYTES = 512 * 1024 * 1024;
/** If more files than this have changed, a branch was probably switched, and the user's index is imported first. */
const SEED_AFTER_CHANGES = 500;
/** With more files than this, objects are written to one pack instead of one file each. */
const PACK_AFTER_FILES = 1_000;
const MAX_SKIPPED = 200;

/** Stores the bytes of files unchanged, regardless of the user's attributes. */
const RAW_ATTRIBUTES = "* -text -filter -ident -eol -working-tree-encoding\n";
/** Excludes in a folder that is not a repository: files that programs create rather than people. */
const DEFAULT_EXCLUDES = "/.*/\nnode_modules/\n";

export type Kind = "repository" | "folder";
/** A file that is not in the checkpoint, and the reason. */
export type SkippedFile = { readonly path: string; readonly reason: string };
export type CapturedTree = {
  readonly tree: string;
  readonly skipped: readonly SkippedFile[];
  /** Permissions that git does not record. */
  readonly modes: Readonly<Record<string, number>>;
  /** Repositories inside, as paths relative to the root. */
  readonly nested: readonly string[];
};
/** Differences from the last capture. `others`: untracked files. */
type ListedChanges = {
  readonly others: readonly string[];
  readonly changed: readonly string[];
  readonly nested: string[];
};

export class ShadowGit {
  readonly root: string;
  readonly kind: Kind;
  readonly #options: GitOptions;
  readonly #folders: GitFolders;
  readonly #modes: ModeList;
  /** The tree of an index file; another daemon may replace the file. */
  #tree: { readonly id: string; readonly index: string } | undefined;

  constructor(options: GitOptions, folders: GitFolders, kind: Kind) {
    this.root = folders.root;
    this.kind = kind;
    this.#options = options;
    this.#folders = folders;
    this.#modes = new ModeList(join(folders.gitDirectory, "modes"));
  }

  /** Captures every file that git would not ignore. Throws a readable message if a limit is exceeded. */
  async capture(): Promise<CapturedTree> {
    await this.prepare();
    await this.#refreshExclude();
    let { others, changed, nested } = await this.list();
    if (this.kind === "repository" && others.length + changed.length > SEED_AFTER_CHANGES && (await this.#seed())) {
      ({ others, changed, nested } = await this.list());
    }
    const { kept, gone, skipped } = await this.#splitByLimits([...new Set([...others, ...changed])], new Set(changed));
    if (gone.length > 0) {
      await this.git(["update-index", "--force-remove", "-z", "--stdin"], { input: joinNul(gone) });
      await this.#modes.remove(gone);
    }
    if (kept.length > 0) await this.#add(kept);
    return { tree: await this.#writeTree(), skipped, modes: this.#modes.all, nested };
  }

  /** Lists untracked files and changed files. `without`: folders below that are skipped. */
  async list(without: readonly string[] = []): Promise<ListedChanges> {
    const excludes = without.map((folder) => `--exclude=/${escapePattern(folder)}/`);
    const [untracked, dirty] = await Promise.all([
      this.git(["ls-files", "-z", "--others", "--exclude-standard", ...excludes]),
      this.git(["diff-files", "-z", "--name-only", "--ignore-submodules=all"]),
    ]);
    const others = splitNul(untracked);
    return {
      others: others.filter((path) => !path.endsWith("/")),
      nested: others.filter((path) => path.endsWith("/")).map((path) => path.slice(0, -1)),
      changed: splitNul(dirty),
    };
  }

  /** Returns the tree of the last capture, or the empty tree. */
  async writeIndexTree(): Promise<string> {
    // The objects of tracked files that are too large are not in this store.
    return (await this.git(["write-tree", "--missing-ok"])).trim();
  }

  /** Like writeIndexTree(), but cached until the index changes. */
  async #writeTree(): Promise<string> {
    const before = await this.#getIndexVersion();
    if (this.#tree && this.#tree.index === before) return this.#tree.id;
    const id = await this.writeIndexTree();
    // Git may store the trees it created in the index.
    this.#tree = { id, index: await this.#getIndexVersion() };
    return id;
  }

  /** Identifies a version of the index file: git writes a new file for each change. */
  async #getIndexVersion(): Promise<string> {
    const stats = await stat(join(this.#folders.gitDirectory, "index"), { bigint: true }).catch(() => undefined);
    return stats ? `${stats.ino} ${stats.mtimeNs} ${stats.size}` : "";
  }

  /** Creates the git directory if it does not exist. Seeds the index from the user's index, so that not every file has to be read again. */
  async prepare(): Promise<void> {
    const { gitDirectory, objects, root } = this.#folders;
    await this.#removeStaleLock();
    if (await pathExists(join(gitDirectory, "info", "ready"))) return;
    await rm(gitDirectory, { recursive: true, force: true });
    await mkdir(gitDirectory, { recursive: true, mode: 0o700 });
    await mkdir(objects, { recursive: true, mode: 0o700 });
    await this.git(["init", "-q", "--bare", "--object-format=sha1", gitDirectory]);
    await mkdir(join(gitDirectory, "info"), { recursive: true });
    await writeFile(join(gitDirectory, "info", "attributes"), RAW_ATTRIBUTES);
    await writeFile(join(gitDirectory, "info", "exclude"), this.kind === "folder" ? DEFAULT_EXCLUDES : "");
    await writeFile(join(gitDirectory, "root"), root);
    if (this.kind === "repository") await this.#seed();
    await writeFile(join(gitDirectory, "info", "ready"), "");
  }

  git(args: readonly string[], commandOptions: Partial<CheckpointGit> = {}): Promise<string> {
    return runCheckpointGit(this.#options, { ...this.#folders, args, ...commandOptions });
  }

  get folders(): GitFolders {
    return this.#folders;
  }

  /**
   * Removes the lock of a killed git process, because every later one would refuse to write. None of our commands runs longer than this
   * timeout.
   */
  async #removeStaleLock(): Promise<void> {
    const lock = join(this.#folders.gitDirectory, "index.lock");
    const stats = await lstat(lock).catch(() => undefined);
    if (stats && stats.mtimeMs < this.#options.clock.now() - BULK_TIMEOUT_MS) await rm(lock, { force: true });
  }

  /** Imports the user's index and objects. Returns false if there is nothing to import. */
  async #seed(): Promise<boolean> {
    const repository = await findOwnRepository(this.#options, this.root);
    if (repository?.format !== "sha1") return false;
    return seedIndex(this.#options, this.#folders, repository);
  }

  /** Adds the current rules of the user's `.git/info/exclude`. Earlier rules still apply during a restore. */
  async addExclude(): Promise<void> {
    const rules = readRegularText(join(this.root, ".git", "info", "exclude"));
    if (rules !== undefined) await appendFile(join(this.#folders.gitDirectory, "info", "exclude"), `\n${rules}`);
  }

  async #refreshExclude(): Promise<void> {
    if (this.kind === "folder") return;
    const rules = readRegularText(join(this.root, ".git", "info", "exclude"));
    if (rules !== undefined)
      await writeFile(join(this.#folders.gitDirectory, "info", "exclude"), rules).catch(() => {});
  }

  async #add(kept: readonly string[]): Promise<void> {
    const bulk = kept.length > PACK_AFTER_FILES ? ["-c", "core.bigFileThreshold=1"] : [];
    const args = [...bulk, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
    await this.git(args, { input: joinNul(kept), timeout_ms: BULK_TIMEOUT_MS });
  }

  /**
   * Splits the paths by whether they can be captured. `gone`: tracked paths that must be removed from the index, because they can no longer
   * be captured.
   */
  async #splitByLimits(
    paths: readonly string[],
    tracked: ReadonlySet<string>,
  ): Promise<{ kept: string[]; gone: string[]; skipped: SkippedFile[] }> {
    if (paths.length > MAX_PATHS) throw conflict(`${this.root} has more than ${MAX_PATHS} changed files`);
    const keptPaths: string[] = [];
    const removedPaths: string[] = [];
    const skipped: SkippedFile[] = [];
    const modes = new Map<string, number>();
    let bytes = 0;
    for (const path of paths) {
      const { size = 0, mode, problem } = await this.#inspect(path);
      if (problem !== undefined) {
        if (tracked.has(path)) removedPaths.push(path);
        if (problem !== "" && skipped.length < MAX_SKIPPED) skipped.push({ path, reason: problem });
        continue;
      }
      bytes += size;
      if (bytes > MAX_BYTES) throw conflict(`${this.root} has more than ${MAX_BYTES} bytes of changes`);
      modes.set(path, mode ?? 0);
      keptPaths.push(path);
    }
    if (keptPaths.length > 0) await this.#requireSpace(bytes);
    await this.#modes.record(modes);
    return { kept: keptPaths, gone: removedPaths, skipped };
  }

  /** `problem`: why the file is not captured; empty if the path is not a regular file. */
  async #inspect(path: string): Promise<{ size?: number; mode?: number; problem?: string }> {
    if (path.includes("\uFFFD")) return { problem: "its name is not UTF-8" };
    const file = join(this.root, path);
    const stats = await lstat(file).catch(() => undefined);
    if (!stats || stats.isSymbolicLink()) return {};
    if (!stats.isFile()) return { problem: "" };
    if (stats.size > MAX_FILE_BYTES) return { problem: `it is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB` };
    return (await isReadable(file)) ? { size: stats.size, mode: stats.mode & 0o777 } : { problem: "it cannot be read" };
  }

  async #requireSpace(bytes: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.#folders.objects);
    if (bavail * bsize - bytes < MIN_FREE_BYTES) throw conflict("the disk is almost full");
  }
}

/** Escapes a path as a pattern that matches only itself. */
const escapePattern = (path: string): string => path.replaceAll(/[\\*?[\]! ]/g, String.raw`\$&`);

export const joinNul = (paths: readonly string[]): string => paths.map((path) => `${path}\0`).join("");
export const splitNul = (text: string): string[] => text.split("\0").filter((part) => part !== "");

export const isReadable = (path: string): Promise<boolean> =>
  access(path, constants.R_OK).then(
    () => true,
    () => false,
  );
