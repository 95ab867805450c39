// Follows the repositories that chats work on. Records the paths that their tools access. While someone watches a chat, scans its
// repositories after tools, on request and every half minute, but at most once a second, and sends the changes since the last message
// (facts/chats 2.11, rules GS-1 to GS-5). One scan serves all watchers of a chat; a slow reader gets fewer messages.
import { type Timer, toRfc3339 } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { GitMessage, GitReferences, GitRepository } from "#schema/agents/git-message.ts";
import type { GitRecord } from "./record.ts";
import { filterFolders, findCommandFolders, findRepository, isRepository } from "./repositories.ts";
import { type GitOptions, loadReference, type RepositorySnapshot, scanRepository } from "./scan.ts";

const COOLDOWN_MS = 1_000;
const POLL_INTERVAL_MS = 30_000;
const MAX_CHATS = 256;
const MAX_ROOTS = 16;
/** Maximum number of bytes of a message, unless it is about a single repository. */
const MAX_MESSAGE_BYTES = 3 * 1024 * 1024;
/** Maximum number of remembered paths that are not in a repository yet. */
const MAX_PATHS = 32;

export type GitWatcher = {
  /** Sends a message. Returns false while the reader is still busy with the previous one; `GitWatch.flush` signals that it is ready. */
  send(message: GitMessage): boolean;
};

export type GitWatch = { refresh(): void; flush(): void; stop(): void };

type Reader = {
  readonly watcher: GitWatcher;
  readonly sent: Map<string, string>;
  needsReply: boolean;
  sentProblem: string;
};

export type GitWatchOptions = GitOptions & {
  readonly record: GitRecord;
  /** The agent's folder, shown if the chat has touched no repository. */
  readonly folder: () => string;
};

type TrackedChat = {
  /** Resolves when the record of an earlier daemon has been loaded. */
  loaded: Promise<void>;
  /** In the order in which they were touched. */
  readonly roots: Set<string>;
  readonly paths: Set<string>;
  readonly readers: Set<Reader>;
  snapshots: Map<string, RepositorySnapshot>;
  scanned_at: string | undefined;
  problem: string;
  /** Roots of repositories whose last scan failed. A repository may be incomplete for a moment, so only a second failure is reported. */
  failing: ReadonlySet<string>;
  isScanning: boolean;
  isScanRequested: boolean;
  scannedAtMs: number;
  scanTimer: Timer | undefined;
  pollTimer: Timer | undefined;
};

export class GitWatches {
  readonly #options: GitWatchOptions;
  readonly #chats = new Map<string, TrackedChat>();

  constructor(options: GitWatchOptions) {
    this.#options = options;
  }

  /** Records that tools of these chats accessed these paths. `changed`: they may have written there. */
  async recordAccess(chats: readonly string[], paths: readonly string[], changed: boolean): Promise<void> {
    for (const path of paths) {
      const root = await findRepository(path);
      for (const chat of chats) {
        const tracked = this.#track(chat);
        await tracked.loaded;
        const isNew = root === undefined ? !tracked.paths.has(path) : !tracked.roots.has(root);
        if (root === undefined) moveToEnd(tracked.paths, path, MAX_PATHS);
        else moveToEnd(tracked.roots, root, MAX_ROOTS);
        if (isNew) await this.#saveRecord(chat, tracked);
        if ((isNew && root !== undefined) || changed) this.#requestScan(tracked);
      }
    }
  }

  /** Records a command in `directory` that starts, or that has `ended`. */
  async recordCommand(chats: readonly string[], command: string, directory: string, ended: boolean): Promise<void> {
    await this.recordAccess(chats, await filterFolders(findCommandFolders(command, directory)), ended);
  }

  /** Sends the current state and then each change. */
  watch(chat: string, watcher: GitWatcher): GitWatch {
    const tracked = this.#track(chat);
    const reader: Reader = { watcher, sent: new Map(), needsReply: false, sentProblem: "" };
    tracked.readers.add(reader);
    tracked.pollTimer ??= this.#options.clock.every(POLL_INTERVAL_MS, () => this.#requestScan(tracked));
    this.#requestScan(tracked);
    return {
      refresh: () => {
        reader.needsReply = true;
        this.#requestScan(tracked);
      },
      flush: () => this.#sendChanges(tracked, reader),
      stop: () => {
        tracked.readers.delete(reader);
        if (tracked.readers.size > 0) return;
        for (const timer of [tracked.scanTimer, tracked.pollTimer]) timer?.cancel();
        Object.assign(tracked, { scanTimer: undefined, pollTimer: undefined, isScanRequested: false });
      },
    };
  }

  /** Returns the branches that are checked out in the chat's repositories, the most recently accessed repository last. */
  async listReferences(chat: string): Promise<GitReferences> {
    const tracked = this.#track(chat);
    await tracked.loaded;
    await this.#findNewRepositories(tracked);
    const repositories: GitReferences["repositories"] = [];
    for (const root of tracked.roots) {
      const reference = await loadReference(this.#options, root).catch(() => undefined);
      if (reference) repositories.push(reference);
    }
    return { repositories };
  }

  #track(chat: string): TrackedChat {
    const existing = this.#chats.get(chat);
    const tracked = existing ?? createTrackedChat();
    if (!existing) tracked.loaded = this.#loadRecord(chat, tracked);
    this.#chats.delete(chat);
    this.#chats.set(chat, tracked);
    for (const [id, { readers }] of this.#chats) {
      if (this.#chats.size <= MAX_CHATS) break;
      if (readers.size === 0) this.#chats.delete(id);
    }
    return tracked;
  }

  /** Adds the repositories and paths of the stored record. */
  async #loadRecord(chat: string, { roots, paths }: TrackedChat): Promise<void> {
    const storedRecord = await this.#options.record.read(chat);
    for (const root of storedRecord?.roots ?? []) moveToEnd(roots, root, MAX_ROOTS);
    for (const path of storedRecord?.paths ?? []) moveToEnd(paths, path, MAX_PATHS);
  }

  #saveRecord(chat: string, { roots, paths }: TrackedChat): Promise<void> {
    return this.#options.record.write(chat, { roots: [...roots], paths: [...paths] });
  }

  #requestScan(tracked: TrackedChat): void {
    if (tracked.readers.size === 0) return;
    tracked.isScanRequested = true;
    if (tracked.isScanning || tracked.scanTimer) return;
    const { clock } = this.#options;
    const delay = Math.max(0, tracked.scannedAtMs + COOLDOWN_MS - clock.monotonic());
    tracked.scanTimer = clock.after(delay, () => {
      tracked.scanTimer = undefined;
      void this.#scan(tracked);
    });
  }

  async #scan(tracked: TrackedChat): Promise<void> {
    const { clock } = this.#options;
    tracked.isScanning = true;
    tracked.isScanRequested = false;
    const snapshots = new Map<string, RepositorySnapshot>();
    const failing = new Set<string>();
    tracked.problem = "";
    await tracked.loaded;
    await this.#findNewRepositories(tracked);
    for (const root of await this.#listShown(tracked)) {
      if (!(await isRepository(root))) continue;
      try {
        snapshots.set(root, await scanRepository(this.#options, root));
      } catch (error) {
        const previous = tracked.snapshots.get(root);
        if (previous) snapshots.set(root, previous);
        failing.add(root);
        if (tracked.failing.has(root)) tracked.problem = `${root} could not be looked at: ${(error as Error).message}`;
        else tracked.isScanRequested = true;
        log("daemon").debug("{root} could not be looked at: {error}", { root, error });
      }
    }
    Object.assign(tracked, {
      snapshots,
      failing,
      scanned_at: toRfc3339(clock.now()),
      isScanning: false,
      scannedAtMs: clock.monotonic(),
    });
    for (const reader of tracked.readers) this.#sendChanges(tracked, reader);
    if (tracked.isScanRequested) this.#requestScan(tracked);
  }

  /** Returns the repositories that a chat works on; if it works on none, the repository that contains the agent's folder. */
  async #listShown({ roots }: TrackedChat): Promise<readonly string[]> {
    if (roots.size > 0) return [...roots];
    const enclosing = await findRepository(this.#options.folder());
    return enclosing === undefined ? [] : [enclosing];
  }

  /** Checks whether recorded paths are in a repository by now. */
  async #findNewRepositories(tracked: TrackedChat): Promise<void> {
    for (const path of tracked.paths) {
      const root = await findRepository(path);
      if (root === undefined) continue;
      tracked.paths.delete(path);
      moveToEnd(tracked.roots, root, MAX_ROOTS);
    }
  }

  #sendChanges(tracked: TrackedChat, reader: Reader): void {
    const { snapshots, scanned_at, problem } = tracked;
    if (scanned_at === undefined) return;
    if (problem !== reader.sentProblem) {
      if (problem !== "" && !reader.watcher.send({ type: "error", message: problem })) return;
      reader.sentProblem = problem;
    }
    for (;;) {
      const changes = collectNews(snapshots, reader);
      if (changes.length === 0 && !reader.needsReply) return;
      if (!reader.watcher.send({ type: "changes", scanned_at, repositories: changes })) return;
      reader.needsReply = false;
      for (const { repo_root, removed } of changes) {
        const snapshot = snapshots.get(repo_root);
        if (removed || !snapshot) reader.sent.delete(repo_root);
        else reader.sent.set(repo_root, toDigest(snapshot));
      }
    }
  }
}

/** Returns the repositories that differ from the last ones sent to the reader, as many as fit into one message. */
const collectNews = (
  snapshots: ReadonlyMap<string, RepositorySnapshot>,
  { sent }: Pick<Reader, "sent">,
): GitRepository[] => {
  const removedRoots = [...sent.keys()].filter((root) => !snapshots.has(root));
  const changes: GitRepository[] = removedRoots.map((repo_root) => ({ repo_root, ...EMPTY_SNAPSHOT, removed: true }));
  let size = 0;
  for (const [repo_root, snapshot] of snapshots) {
    if (sent.get(repo_root) === toDigest(snapshot)) continue;
    size += Buffer.byteLength(JSON.stringify(snapshot));
    if (size > MAX_MESSAGE_BYTES && changes.length > 0) break;
    changes.push({ repo_root, ...snapshot, removed: false });
  }
  return changes;
};

const toDigest = (snapshot: RepositorySnapshot): string => String(Bun.hash(JSON.stringify(snapshot)));

const EMPTY_SNAPSHOT: RepositorySnapshot = { branch: "", remote_origin: "", unified_diff: "" };

const createTrackedChat = (): TrackedChat => ({
  loaded: Promise.resolve(),
  roots: new Set(),
  paths: new Set(),
  readers: new Set(),
  snapshots: new Map(),
  scanned_at: undefined,
  problem: "",
  failing: new Set<string>(),
  isScanning: false,
  isScanRequested: false,
  scannedAtMs: Number.NEGATIVE_INFINITY,
  scanTimer: undefined,
  pollTimer: undefined,
});

/** Moves an entry to the end, or adds it. If the set has more than `maxCount` entries, the first ones are removed. */
const moveToEnd = (set: Set<string>, entry: string, maxCount: number): void => {
  set.delete(entry);
  set.add(entry);
  for (const first of set) {
    if (set.size <= maxCount) return;
    set.delete(first);
  }
};
