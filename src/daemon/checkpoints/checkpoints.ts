// Checkpoints of the workspace's files, one per chat message, and restoring them (rules UN-1 to UN-6, UN-10 to UN-12). Covers the agent's
// folder, or the repository around it, and every repository inside. Used by http.ts.
import { mkdir, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, conflict } from "#base/errors.ts";
import { sha256 } from "#base/ids.ts";
import { LockedError, lockFile } from "#base/lock-file.ts";
import { log } from "#base/log.ts";
import { createSerialQueue, finishesWithin, retry } from "#base/retry.ts";
import {
  CHECKPOINT_DAYS,
  type Checkpoint,
  type CheckpointChanges,
  type CheckpointTaken,
  type CopyCheckpoints,
  type FolderChanges,
  type RestoreResult,
} from "#schema/agents/checkpoint.ts";
import { Diff } from "../git/diff.ts";
import type { GitOptions } from "../git/scan.ts";
import { findEnclosingRepository, readGitfile } from "./folders.ts";
import { IgnoredFiles } from "./ignored.ts";
import { CheckpointStore, isOlder } from "./objects.ts";
import { type CheckpointFolder, type CheckpointRecord, CheckpointRecords } from "./records.ts";
import { FolderRestore } from "./restore.ts";
import { BULK_TIMEOUT_MS } from "./run.ts";
import { findOwnRepository } from "./seed.ts";
import { type Kind, ShadowGit } from "./shadow.ts";

/** The empty tree, which every git knows. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const DIFF_TREE_ARGS = [
  "-c",
  "core.quotePath=false",
  "diff-tree",
  "-r",
  "--no-renames",
  "--no-ext-diff",
  "--no-textconv",
];

/** Compares the trees; undefined stands for a folder that did not exist. Throws with git's own message. */
const compareTrees = async (
  options: GitOptions,
  shadow: ShadowGit,
  {
    before = EMPTY_TREE,
    after = EMPTY_TREE,
  }: { readonly before: string | undefined; readonly after: string | undefined },
): Promise<Omit<FolderChanges, "root">> => {
  await shadow.prepare();
  // Tracked files that are too large to copy exist only in the user's repository.
  const own = shadow.kind === "repository" ? await findOwnRepository(options, shadow.root) : undefined;
  const how = { timeout_ms: BULK_TIMEOUT_MS, ...(own ? { borrowed: own.objects } : {}) };
  const counts = { files: 0, added: 0, removed: 0 };
  const numbers = await shadow.git([...DIFF_TREE_ARGS, "--numstat", "-z", before, after], how);
  for (const line of numbers.split("\0").filter((one) => one !== "")) {
    const [added, removed] = line.split("\t");
    counts.files += 1;
    // Git does not count lines of binary files.
    counts.added += Number(added) || 0;
    counts.removed += Number(removed) || 0;
  }
  const diff = new Diff();
  const encoder = new TextEncoder();
  const onText = (text: string): void => diff.add(encoder.encode(text));
  await shadow.git([...DIFF_TREE_ARGS, "-p", before, after], { ...how, onText });
  return { ...counts, unified_diff: diff.text };
};

const MAX_FOLDERS = 64;
const DAY_MS = 86_400_000;
/** Maximum number of files that a response names. */
const MAX_NAMED = 20;

/** `folder`: the agent's folder. `state`: where checkpoints are stored. */
export type CheckpointsOptions = GitOptions & { readonly folder: () => string; readonly state: string };

/**
 * Folders in the state folder: records, git directories by workspace folder, the objects that all of them share, and files removed by
 * restores.
 */
const [RECORDS, WORK, OBJECTS, REMOVED] = ["chats", "folders", "objects", "removed"];
/** Days that files removed by a restore are kept. */
const TRASH_DAYS = 7;
/** A file whose modification time is that of the last full cleanup. */
const CLEANED_MARK = "tidied";
/** Locked while git directories are read or written. */
const LOCK_FILE = "lock";
const LOCKED_RETRY_MS = 20;
const IN_PREPARATION_REASON = "the first checkpoint of its files is still being made";

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  readonly #records: CheckpointRecords;
  readonly #store: CheckpointStore;
  readonly #shadows = new Map<string, ShadowGit>();
  readonly #ignored = new Map<string, IgnoredFiles>();
  readonly #serialize = createSerialQueue();
  #next: Promise<CheckpointRecord> | undefined;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
    this.#records = new CheckpointRecords(join(options.state, RECORDS));
    this.#store = new CheckpointStore(options, {
      work: join(options.state, WORK),
      objects: join(options.state, OBJECTS),
    });
  }

  /**
   * Captures the files, once for each message, and returns what could not be captured. Concurrent callers share one capture. A capture that
   * takes longer than `within_ms` is not used, since tools may change files from then on. Once a day the result also lists the chats that
   * have checkpoints. Cleans up afterwards.
   */
  async take({
    within_ms,
    ...of
  }: Checkpoint & { readonly within_ms?: number }): Promise<Omit<CheckpointTaken, "message">> {
    const known = await this.#records.read(of);
    if (known) return { problems: [...known.problems] };
    this.#next ??= this.#withLock(() => {
      this.#next = undefined;
      return this.#capture();
    });
    const captured = this.#next;
    const isInTime = within_ms === undefined || (await finishesWithin(this.#options.clock, within_ms, captured));
    const record = isInTime
      ? await captured
      : { folders: [], problems: [`${this.#options.folder()}: ${IN_PREPARATION_REASON}`] };
    if (!isInTime) captured.catch(() => {});
    await this.#records.write(of, record);
    const isDue = await this.#isDue();
    const isLess = await this.#records.prune(of.chat_id);
    if (isDue || isLess) this.#scheduleCleanup(isDue);
    const problems = [...record.problems];
    return isDue ? { problems, chats: await this.#records.listChats() } : { problems };
  }

  /** Copies the checkpoints of a chat to its fork. */
  async copy(copied: CopyCheckpoints): Promise<void> {
    // Serialized with the cleanup, which keeps only what the records reference.
    await this.#withLock(() => this.#records.copy(copied));
  }

  /** Deletes the checkpoints of these chats. */
  async removeChats(chat_ids: readonly string[]): Promise<void> {
    await this.#records.removeChats(chat_ids);
    this.#scheduleCleanup(false);
  }

  /** Resolves when no work is in progress. */
  async waitUntilIdle(): Promise<void> {
    await this.#withLock(async () => {});
  }

  /**
   * Restores the files one by one and returns the failed ones. Rejects with 404 without a checkpoint, and with 409 if it
   * has no files or none of them could be restored.
   */
  restore(checkpoint: Checkpoint): Promise<RestoreResult> {
    return this.#withLock(async () => {
      const { folders, problems } = await this.#loadOwnRecord(checkpoint);
      const { state, clock } = this.#options;
      const removed = join(state, REMOVED, new Date(clock.now()).toISOString().replaceAll(":", "-"));
      let restored_files = 0;
      const left_out = [...problems];
      // Outer folders first: a file that took the place of a repository is removed before the repository is restored.
      for (const kept of folders) {
        const inside = folders.flatMap(({ root }) =>
          isBelow(root, kept.root) ? [root.slice(kept.root.length + 1)] : [],
        );
        try {
          const shadow = this.#openShadow(kept.root, kept.kind);
          const done = await new FolderRestore(this.#options, shadow, kept, { without: inside, removed }).run();
          restored_files += done.restored;
          left_out.push(...done.left_out, ...(await this.#makeIgnored(shadow).describeMissing()));
        } catch (error) {
          left_out.push(`${kept.root} (${formatError(error)})`);
          log("daemon").warn("{root} was not restored: {error}", { root: kept.root, error });
        }
      }
      if (restored_files === 0 && left_out.length > problems.length) {
        throw conflict(`No file could be restored: ${abbreviateList(left_out).join("; ")}`);
      }
      return { restored_files, left_out: abbreviateList(left_out) };
    });
  }

  /** Runs work one at a time, also across daemons with the same state folder, because they share index files. */
  #withLock<T>(work: () => Promise<T>): Promise<T> {
    return this.#serialize(async () => {
      const { state, clock } = this.#options;
      // If the state folder cannot be created, the work that needs it fails with a better error.
      await mkdir(state, { recursive: true, mode: 0o700 }).catch(() => {});
      const lock = await retry(clock, async () => acquireLock(join(state, LOCK_FILE)), lockRetryDelay);
      try {
        return await work();
      } finally {
        lock?.close();
      }
    });
  }

  /**
   * Compares the current files with those of a checkpoint. Rejects with 404 without a checkpoint and 409 if it has no files. Does not store
   * a checkpoint.
   */
  listChanges(checkpoint: Checkpoint): Promise<CheckpointChanges> {
    return this.#withLock(async () => {
      const then = await this.#loadOwnRecord(checkpoint);
      const now = await this.#capture();
      const before = new Map(then.folders.map((kept) => [kept.root, kept]));
      const after = new Map(now.folders.map((kept) => [kept.root, kept]));
      const problems = [...new Set([...then.problems, ...now.problems])];
      const folders: FolderChanges[] = [];
      for (const [root, kept] of new Map([...before, ...after])) {
        // A folder that cannot be read now has not necessarily been deleted.
        if (!after.has(root) && now.problems.some((problem) => problem.startsWith(`${root}:`))) continue;
        const trees = { before: before.get(root)?.tree, after: after.get(root)?.tree };
        if (trees.before === trees.after) continue;
        try {
          folders.push({ root, ...(await compareTrees(this.#options, this.#openShadow(root, kept.kind), trees)) });
        } catch (error) {
          problems.push(`${root}: ${formatError(error)}`);
        }
      }
      return { folders: folders.filter(({ files }) => files > 0), problems: abbreviateList(problems) };
    });
  }

  /** Returns the checkpoint without folders of other workspaces: files restored from a fork include the fork's checkpoints. */
  async #loadOwnRecord(checkpoint: Checkpoint): Promise<CheckpointRecord> {
    const record = await this.#records.read(checkpoint);
    if (!record) throw new AppError("not_found", "There is no checkpoint of the workspace's files for this message.");
    const { problems } = record;
    if (record.folders.length === 0) throw conflict(`The files were not kept at this message: ${problems.join("; ")}`);
    const { folder, first } = await this.#locate();
    const isInScope = (root: string): boolean => root === folder || isBelow(folder, root) || isBelow(root, first);
    const folders = record.folders.filter(({ root }) => isInScope(root));
    if (folders.length === 0) throw conflict("The files of this message were kept in another workspace.");
    return { folders, problems };
  }

  /** Finds the agent's folder and the repository around it, if any. */
  async #locate(): Promise<{ readonly folder: string; readonly around: string | undefined; readonly first: string }> {
    const folder = await realpath(this.#options.folder());
    const enclosing = await findEnclosingRepository(folder);
    return { folder, around: enclosing, first: enclosing ?? folder };
  }

  async #capture(): Promise<CheckpointRecord> {
    const problems: string[] = [];
    const folders: CheckpointFolder[] = [];
    const { around, first } = await this.#locate();
    const seen = new Set([first]);
    const waiting: { root: string; kind: Kind }[] = [
      { root: first, kind: around === undefined ? "folder" : "repository" },
    ];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { root, kind } = next;
      if (folders.length + problems.length >= MAX_FOLDERS) {
        problems.push(`${root} and ${waiting.length} more: only ${MAX_FOLDERS} repositories are kept`);
        break;
      }
      try {
        const shadow = this.#openShadow(root, kind);
        const captured = await shadow.capture();
        const gitfile = kind === "repository" ? await readGitfile(root) : undefined;
        folders.push({ root, kind, ...captured, ...(gitfile === undefined ? {} : { gitfile }) });
        const inside = captured.nested.map((path) => join(root, path));
        for (const path of [...inside, ...(await this.#makeIgnored(shadow).findRepositories())]) {
          if (seen.has(path)) continue;
          seen.add(path);
          waiting.push({ root: path, kind: "repository" });
        }
      } catch (error) {
        // One folder that is too large must not prevent checkpoints of the others.
        problems.push(`${root}: ${formatError(error)}`);
        log("daemon").warn("no checkpoint of {root}: {error}", { root, error });
      }
    }
    this.#refreshIgnored(folders);
    return { folders, problems };
  }

  /** Finds ignored files for the next checkpoint and for the result of a restore. Runs after the checkpoint is acknowledged. */
  #refreshIgnored(folders: readonly CheckpointFolder[]): void {
    void this.#withLock(async () => {
      for (const { root, kind } of folders) {
        await this.#makeIgnored(this.#openShadow(root, kind))
          .refresh()
          .catch((error) => log("daemon").debug("ignored files of {root} are unknown: {error}", { root, error }));
      }
    });
  }

  #openShadow(root: string, kind: Kind): ShadowGit {
    const { state } = this.#options;
    const name = toName(kind, root);
    const known = this.#shadows.get(name);
    if (known) return known;
    const created = new ShadowGit(
      this.#options,
      { root, gitDirectory: join(state, WORK, name), objects: join(state, OBJECTS) },
      kind,
    );
    this.#shadows.set(name, created);
    return created;
  }

  #makeIgnored(shadow: ShadowGit): IgnoredFiles {
    const { gitDirectory } = shadow.folders;
    const known = this.#ignored.get(gitDirectory);
    if (known) return known;
    const created = new IgnoredFiles(shadow);
    this.#ignored.set(gitDirectory, created);
    return created;
  }

  /** Returns true once a day. */
  async #isDue(): Promise<boolean> {
    const mark = join(this.#options.state, CLEANED_MARK);
    const now = this.#options.clock.now();
    const isFirst = !(await isOlder(mark, Number.MAX_SAFE_INTEGER));
    if (!isFirst && !(await isOlder(mark, now - DAY_MS))) return false;
    await mkdir(this.#options.state, { recursive: true, mode: 0o700 });
    await writeFile(mark, "");
    return !isFirst;
  }

  #scheduleCleanup(withOld: boolean): void {
    this.#withLock(() => this.#cleanUp(withOld)).catch((error) => {
      log("daemon").warn("old checkpoints were not removed: {error}", { error });
    });
  }

  async #cleanUp(withOld: boolean): Promise<void> {
    const now = this.#options.clock.now();
    // One day more than the server assumes, because its clock may differ.
    if (withOld) await this.#records.expire(now - (CHECKPOINT_DAYS + 1) * DAY_MS, now);
    await this.#removeFormer();
    await this.#removeToRemoved(now - TRASH_DAYS * DAY_MS);
    const neededTrees = new Map<string, Set<string>>();
    for (const { root, kind, tree } of await this.#records.listFolders()) {
      const name = toName(kind, root);
      neededTrees.set(name, (neededTrees.get(name) ?? new Set()).add(tree));
    }
    for (const name of await this.#store.removeUnreferenced(neededTrees)) {
      const shadow = this.#shadows.get(name);
      if (shadow) this.#ignored.delete(shadow.folders.gitDirectory);
      this.#shadows.delete(name);
    }
  }

  async #removeToRemoved(before: number): Promise<void> {
    const folder = join(this.#options.state, REMOVED);
    for (const name of await readdir(folder).catch(() => [])) {
      if (await isOlder(join(folder, name), before)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }

  /** Removes checkpoints in the format of earlier versions. They depend on the user's repositories, and no record references them. */
  async #removeFormer(): Promise<void> {
    const { state } = this.#options;
    for (const name of await readdir(state).catch(() => [])) {
      if (/^[0-9a-f]{32}$/.test(name)) await rm(join(state, name), { recursive: true, force: true });
    }
  }
}

const lockRetryDelay = (error: unknown, failures: number): number | undefined =>
  error instanceof LockedError && failures * LOCKED_RETRY_MS < BULK_TIMEOUT_MS ? LOCKED_RETRY_MS : undefined;

/** Returns undefined if the file system has no locks; usually there is only one daemon anyway. Throws LockedError. */
const acquireLock = (file: string): { close(): void } | undefined => {
  try {
    return lockFile(file, "another daemon keeps checkpoints of the same files");
  } catch (error) {
    if (error instanceof LockedError) throw error;
    log("daemon").debug("checkpoints continue without a lock: {error}", { error });
    return undefined;
  }
};

const toName = (kind: Kind, root: string): string => sha256(`${kind} ${root}`).slice(0, 32);

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder}/`);

const formatError = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the first texts and the number of the remaining ones. */
const abbreviateList = (texts: readonly string[]): string[] =>
  texts.length <= MAX_NAMED ? [...texts] : [...texts.slice(0, MAX_NAMED), `and ${texts.length - MAX_NAMED} more`];
