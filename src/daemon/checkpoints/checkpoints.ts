// Takes checkpoints of the workspace's files, one per chat message, and restores them (rules UN-1 to UN-6, UN-10 to UN-12). A checkpoint
// covers the agent's folder, or the repository that contains it, and every repository inside. Used by http.ts.
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

/** The ID of the empty tree, which git knows without storing it. */
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
  const userRepository = shadow.kind === "repository" ? await findOwnRepository(options, shadow.root) : undefined;
  const gitOptions = { timeout_ms: BULK_TIMEOUT_MS, ...(userRepository ? { borrowed: userRepository.objects } : {}) };
  const counts = { files: 0, added: 0, removed: 0 };
  const numstat = await shadow.git([...DIFF_TREE_ARGS, "--numstat", "-z", before, after], gitOptions);
  for (const line of numstat.split("\0").filter((one) => one !== "")) {
    const [added, removed] = line.split("\t");
    counts.files += 1;
    // Git does not count lines of binary files.
    counts.added += Number(added) || 0;
    counts.removed += Number(removed) || 0;
  }
  const diff = new Diff();
  const encoder = new TextEncoder();
  const onText = (text: string): void => diff.add(encoder.encode(text));
  await shadow.git([...DIFF_TREE_ARGS, "-p", before, after], { ...gitOptions, onText });
  return { ...counts, unified_diff: diff.text };
};

const MAX_FOLDERS = 64;
const DAY_MS = 86_400_000;
/** Maximum number of descriptions in a response. */
const MAX_DESCRIPTIONS = 20;

/** `folder`: the agent's folder. `state`: where checkpoints are stored. */
export type CheckpointsOptions = GitOptions & { readonly folder: () => string; readonly state: string };

/**
 * Folders in the state folder: records, git directories by workspace folder, the objects that all of them share, and files removed by
 * restores.
 */
const [RECORDS, WORK, OBJECTS, REMOVED] = ["chats", "folders", "objects", "removed"];
/** Days that files removed by a restore are kept. */
const TRASH_DAYS = 7;
/** The modification time of this file is the time of the last full cleanup. */
const CLEANUP_MARK = "tidied";
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
   * Captures the files, once for each message, and returns descriptions of the folders that could not be captured. Concurrent callers share
   * one capture. A capture that takes longer than `within_ms` is not used, since tools may change files from then on. Once a day, the
   * result also lists the chats that have checkpoints, and old checkpoints are removed afterwards.
   */
  async take({
    within_ms,
    ...checkpoint
  }: Checkpoint & { readonly within_ms?: number }): Promise<Omit<CheckpointTaken, "message">> {
    const existing = await this.#records.read(checkpoint);
    if (existing) return { problems: [...existing.problems] };
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
    await this.#records.write(checkpoint, record);
    const isCleanupDue = await this.#isCleanupDue();
    const wasPruned = await this.#records.prune(checkpoint.chat_id);
    if (isCleanupDue || wasPruned) this.#scheduleCleanup(isCleanupDue);
    const problems = [...record.problems];
    return isCleanupDue ? { problems, chats: await this.#records.listChats() } : { problems };
  }

  /** Copies the checkpoints of a chat to its fork. */
  async copy(copies: CopyCheckpoints): Promise<void> {
    // Serialized with the cleanup, which keeps only what the records reference.
    await this.#withLock(() => this.#records.copy(copies));
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
   * Restores the files one by one and returns the failed ones. Rejects with 404 if the checkpoint does not exist, and with 409 if it has no
   * files or none of them could be restored.
   */
  restore(checkpoint: Checkpoint): Promise<RestoreResult> {
    return this.#withLock(async () => {
      const { folders, problems } = await this.#loadOwnRecord(checkpoint);
      const { state, clock } = this.#options;
      const removed = join(state, REMOVED, new Date(clock.now()).toISOString().replaceAll(":", "-"));
      let restored_files = 0;
      const left_out = [...problems];
      // Outer folders first: a file that took the place of a repository is removed before the repository is restored.
      for (const folder of folders) {
        const inside = folders.flatMap(({ root }) =>
          isBelow(root, folder.root) ? [root.slice(folder.root.length + 1)] : [],
        );
        try {
          const shadow = this.#openShadow(folder.root, folder.kind);
          const done = await new FolderRestore(this.#options, shadow, folder, { without: inside, removed }).run();
          restored_files += done.restored;
          left_out.push(...done.left_out, ...(await this.#getIgnored(shadow).describeMissing()));
        } catch (error) {
          left_out.push(`${folder.root} (${formatError(error)})`);
          log("daemon").warn("{root} was not restored: {error}", { root: folder.root, error });
        }
      }
      if (restored_files === 0 && left_out.length > problems.length) {
        throw conflict(`No file could be restored: ${abbreviateList(left_out).join("; ")}`);
      }
      return { restored_files, left_out: abbreviateList(left_out) };
    });
  }

  /** Runs one piece of work at a time, also across daemons with the same state folder, because these daemons share index files. */
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
   * Compares the current files with those of a checkpoint. Rejects with 404 if the checkpoint does not exist, and with 409 if it has no
   * files. Stores no new checkpoint.
   */
  listChanges(checkpoint: Checkpoint): Promise<CheckpointChanges> {
    return this.#withLock(async () => {
      const past = await this.#loadOwnRecord(checkpoint);
      const current = await this.#capture();
      const before = new Map(past.folders.map((folder) => [folder.root, folder]));
      const after = new Map(current.folders.map((folder) => [folder.root, folder]));
      const problems = [...new Set([...past.problems, ...current.problems])];
      const folders: FolderChanges[] = [];
      for (const [root, folder] of new Map([...before, ...after])) {
        // A folder that cannot be read now has not necessarily been deleted.
        if (!after.has(root) && current.problems.some((problem) => problem.startsWith(`${root}:`))) continue;
        const trees = { before: before.get(root)?.tree, after: after.get(root)?.tree };
        if (trees.before === trees.after) continue;
        try {
          folders.push({ root, ...(await compareTrees(this.#options, this.#openShadow(root, folder.kind), trees)) });
        } catch (error) {
          problems.push(`${root}: ${formatError(error)}`);
        }
      }
      return { folders: folders.filter(({ files }) => files > 0), problems: abbreviateList(problems) };
    });
  }

  /** Returns the checkpoint without folders of other workspaces: a fork's files include checkpoints of the workspace that was forked. */
  async #loadOwnRecord(checkpoint: Checkpoint): Promise<CheckpointRecord> {
    const record = await this.#records.read(checkpoint);
    if (!record) throw new AppError("not_found", "There is no checkpoint of the workspace's files for this message.");
    const { problems } = record;
    if (record.folders.length === 0) throw conflict(`The files were not kept at this message: ${problems.join("; ")}`);
    const { folder, outermost } = await this.#locate();
    const isInScope = (root: string): boolean => root === folder || isBelow(folder, root) || isBelow(root, outermost);
    const folders = record.folders.filter(({ root }) => isInScope(root));
    if (folders.length === 0) throw conflict("The files of this message were kept in another workspace.");
    return { folders, problems };
  }

  /** Finds the agent's folder and the repository that contains it, if any. `outermost`: that repository, or the folder. */
  async #locate(): Promise<{
    readonly folder: string;
    readonly enclosing: string | undefined;
    readonly outermost: string;
  }> {
    const folder = await realpath(this.#options.folder());
    const enclosing = await findEnclosingRepository(folder);
    return { folder, enclosing, outermost: enclosing ?? folder };
  }

  async #capture(): Promise<CheckpointRecord> {
    const problems: string[] = [];
    const folders: CheckpointFolder[] = [];
    const { enclosing, outermost } = await this.#locate();
    const seen = new Set([outermost]);
    const queue: { root: string; kind: Kind }[] = [
      { root: outermost, kind: enclosing === undefined ? "folder" : "repository" },
    ];
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { root, kind } = next;
      if (folders.length + problems.length >= MAX_FOLDERS) {
        problems.push(`${root} and ${queue.length} more: only ${MAX_FOLDERS} repositories are kept`);
        break;
      }
      try {
        const shadow = this.#openShadow(root, kind);
        const captured = await shadow.capture();
        const gitfile = kind === "repository" ? await readGitfile(root) : undefined;
        folders.push({ root, kind, ...captured, ...(gitfile === undefined ? {} : { gitfile }) });
        const inside = captured.nested.map((path) => join(root, path));
        for (const path of [...inside, ...(await this.#getIgnored(shadow).findRepositories())]) {
          if (seen.has(path)) continue;
          seen.add(path);
          queue.push({ root: path, kind: "repository" });
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
        await this.#getIgnored(this.#openShadow(root, kind))
          .refresh()
          .catch((error) => log("daemon").debug("ignored files of {root} are unknown: {error}", { root, error }));
      }
    });
  }

  #openShadow(root: string, kind: Kind): ShadowGit {
    const { state } = this.#options;
    const name = toName(kind, root);
    const existing = this.#shadows.get(name);
    if (existing) return existing;
    const created = new ShadowGit(
      this.#options,
      { root, gitDirectory: join(state, WORK, name), objects: join(state, OBJECTS) },
      kind,
    );
    this.#shadows.set(name, created);
    return created;
  }

  #getIgnored(shadow: ShadowGit): IgnoredFiles {
    const { gitDirectory } = shadow.folders;
    const existing = this.#ignored.get(gitDirectory);
    if (existing) return existing;
    const created = new IgnoredFiles(shadow);
    this.#ignored.set(gitDirectory, created);
    return created;
  }

  /** Returns true once a day, when old checkpoints are due to be removed. */
  async #isCleanupDue(): Promise<boolean> {
    const mark = join(this.#options.state, CLEANUP_MARK);
    const now = this.#options.clock.now();
    const isFirst = !(await isOlder(mark, Number.MAX_SAFE_INTEGER));
    if (!isFirst && !(await isOlder(mark, now - DAY_MS))) return false;
    await mkdir(this.#options.state, { recursive: true, mode: 0o700 });
    await writeFile(mark, "");
    return !isFirst;
  }

  #scheduleCleanup(expiresOld: boolean): void {
    this.#withLock(() => this.#cleanUp(expiresOld)).catch((error) => {
      log("daemon").warn("old checkpoints were not removed: {error}", { error });
    });
  }

  async #cleanUp(expiresOld: boolean): Promise<void> {
    const now = this.#options.clock.now();
    // One day more than the server assumes, because the server's clock may differ.
    if (expiresOld) await this.#records.expire(now - (CHECKPOINT_DAYS + 1) * DAY_MS, now);
    await this.#removeOldFormat();
    await this.#emptyTrash(now - TRASH_DAYS * DAY_MS);
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

  async #emptyTrash(beforeMs: number): Promise<void> {
    const folder = join(this.#options.state, REMOVED);
    for (const name of await readdir(folder).catch(() => [])) {
      if (await isOlder(join(folder, name), beforeMs)) await rm(join(folder, name), { recursive: true, force: true });
    }
  }

  /** Removes checkpoints in the format of earlier versions. They depend on the user's repositories, and no record references them. */
  async #removeOldFormat(): Promise<void> {
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

/** Returns the first descriptions, followed by the number of the others. */
const abbreviateList = (descriptions: readonly string[]): string[] =>
  descriptions.length <= MAX_DESCRIPTIONS
    ? [...descriptions]
    : [...descriptions.slice(0, MAX_DESCRIPTIONS), `and ${descriptions.length - MAX_DESCRIPTIONS} more`];
