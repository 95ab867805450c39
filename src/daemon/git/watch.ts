// The repositories that chats work on. Records what their tools touch, scans while someone watches (after tools, on request, every half
// minute, at most once a second), and sends what has changed since the last message (facts/chats 2.11, rules GS-1 to GS-5). One scan serves
// all watchers of a chat; a slow reader gets fewer messages.
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
/** Bytes of a message; a single repository may exceed it slightly. */
const MAX_MESSAGE_BYTES = 3 * 1024 * 1024;
/** Maximum number of remembered paths that are not in a repository yet. */
const MAX_PATHS = 32;

export type GitWatcher = {
  /** Sends a message. Returns false while the reader is still busy with the previous one; `GitWatch.flush` signals that it is ready. */
  send(message: GitMessage): boolean;
};

export type GitWatch = { refresh(): void; flush(): void; stop(): void };

type Reader = { readonly to: GitWatcher; readonly sent: Map<string, string>; owes: boolean; failed: string };

export type GitWatchOptions = GitOptions & {
  readonly record: GitRecord;
  /** The agent's folder, shown if the chat has touched no repository. */
  readonly folder: () => string;
};

type TrackedChat = {
  /** Resolves when the record of an earlier daemon is loaded. */
  known: Promise<void>;
  /** In the order in which they were touched. */
  readonly roots: Set<string>;
  readonly paths: Set<string>;
  readonly readers: Set<Reader>;
  pictures: Map<string, RepositorySnapshot>;
  scanned_at: string | undefined;
  problem: string;
  /** Roots whose last scan failed: partly created or removed, or broken. */
  failing: ReadonlySet<string>;
  isScanning: boolean;
  wanted: boolean;
  last: number;
  soon: Timer | undefined;
  regular: Timer | undefined;
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
        await tracked.known;
        const isNew = root === undefined ? !tracked.paths.has(path) : !tracked.roots.has(root);
        if (root === undefined) moveToEnd(tracked.paths, path, MAX_PATHS);
        else moveToEnd(tracked.roots, root, MAX_ROOTS);
        if (isNew) await this.#saveRecord(chat, tracked);
        if ((isNew && root !== undefined) || changed) this.#requestScan(tracked);
      }
    }
  }

  /** Records a command that starts in `directory`, or has `ended`. */
  async recordCommand(chats: readonly string[], command: string, directory: string, ended: boolean): Promise<void> {
    await this.recordAccess(chats, await filterFolders(findCommandFolders(command, directory)), ended);
  }

  /** Sends the current state and then each change. */
  watch(chat: string, to: GitWatcher): GitWatch {
    const tracked = this.#track(chat);
    const reader: Reader = { to, sent: new Map(), owes: false, failed: "" };
    tracked.readers.add(reader);
    tracked.regular ??= this.#options.clock.every(POLL_INTERVAL_MS, () => this.#requestScan(tracked));
    this.#requestScan(tracked);
    return {
      refresh: () => {
        reader.owes = true;
        this.#requestScan(tracked);
      },
      flush: () => this.#sendChanges(tracked, reader),
      stop: () => {
        tracked.readers.delete(reader);
        if (tracked.readers.size > 0) return;
        for (const timer of [tracked.soon, tracked.regular]) timer?.cancel();
        Object.assign(tracked, { soon: undefined, regular: undefined, wanted: false });
      },
    };
  }

  /** Returns what is checked out where; the repository touched last comes last. */
  async listReferences(chat: string): Promise<GitReferences> {
    const tracked = this.#track(chat);
    await tracked.known;
    await this.#findNewRepositories(tracked);
    const repositories: GitReferences["repositories"] = [];
    for (const root of tracked.roots) {
      const found = await loadReference(this.#options, root).catch(() => undefined);
      if (found) repositories.push(found);
    }
    return { repositories };
  }

  #track(chat: string): TrackedChat {
    const known = this.#chats.get(chat);
    const tracked = known ?? createTracked();
    if (!known) tracked.known = this.#loadRecord(chat, tracked);
    this.#chats.delete(chat);
    this.#chats.set(chat, tracked);
    for (const [id, { readers }] of this.#chats) {
      if (this.#chats.size <= MAX_CHATS) break;
      if (readers.size === 0) this.#chats.delete(id);
    }
    return tracked;
  }

  /** Loads the record and appends what was touched since. */
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
    tracked.wanted = true;
    if (tracked.isScanning || tracked.soon) return;
    const { clock } = this.#options;
    const delay = Math.max(0, tracked.last + COOLDOWN_MS - clock.monotonic());
    tracked.soon = clock.after(delay, () => {
      tracked.soon = undefined;
      void this.#scan(tracked);
    });
  }

  async #scan(tracked: TrackedChat): Promise<void> {
    const { clock } = this.#options;
    tracked.isScanning = true;
    tracked.wanted = false;
    const pictures = new Map<string, RepositorySnapshot>();
    const failing = new Set<string>();
    tracked.problem = "";
    await tracked.known;
    await this.#findNewRepositories(tracked);
    for (const root of await this.#listShown(tracked)) {
      if (!(await isRepository(root))) continue;
      try {
        pictures.set(root, await scanRepository(this.#options, root));
      } catch (error) {
        const known = tracked.pictures.get(root);
        if (known) pictures.set(root, known);
        failing.add(root);
        if (tracked.failing.has(root)) tracked.problem = `${root} could not be looked at: ${(error as Error).message}`;
        else tracked.wanted = true;
        log("daemon").debug("{root} could not be looked at: {error}", { root, error });
      }
    }
    Object.assign(tracked, {
      pictures,
      failing,
      scanned_at: toRfc3339(clock.now()),
      isScanning: false,
      last: clock.monotonic(),
    });
    for (const reader of tracked.readers) this.#sendChanges(tracked, reader);
    if (tracked.wanted) this.#requestScan(tracked);
  }

  /** Returns the repositories that a chat works on, or else the one around the agent's folder. */
  async #listShown({ roots }: TrackedChat): Promise<readonly string[]> {
    if (roots.size > 0) return [...roots];
    const enclosing = await findRepository(this.#options.folder());
    return enclosing === undefined ? [] : [enclosing];
  }

  /** A repository may have been created where there was none. */
  async #findNewRepositories(tracked: TrackedChat): Promise<void> {
    for (const path of tracked.paths) {
      const root = await findRepository(path);
      if (root === undefined) continue;
      tracked.paths.delete(path);
      moveToEnd(tracked.roots, root, MAX_ROOTS);
    }
  }

  #sendChanges(tracked: TrackedChat, reader: Reader): void {
    const { pictures, scanned_at, problem } = tracked;
    if (scanned_at === undefined) return;
    if (problem !== reader.failed) {
      if (problem !== "" && !reader.to.send({ type: "error", message: problem })) return;
      reader.failed = problem;
    }
    for (;;) {
      const changes = collectNews(pictures, reader);
      if (changes.length === 0 && !reader.owes) return;
      if (!reader.to.send({ type: "changes", scanned_at, repositories: changes })) return;
      reader.owes = false;
      for (const { repo_root, removed } of changes) {
        const picture = pictures.get(repo_root);
        if (removed || !picture) reader.sent.delete(repo_root);
        else reader.sent.set(repo_root, toMark(picture));
      }
    }
  }
}

/** Returns the repositories that differ from what the reader has, as many as fit into one message. */
const collectNews = (
  pictures: ReadonlyMap<string, RepositorySnapshot>,
  { sent }: Pick<Reader, "sent">,
): GitRepository[] => {
  const removedRoots = [...sent.keys()].filter((root) => !pictures.has(root));
  const changes: GitRepository[] = removedRoots.map((repo_root) => ({ repo_root, ...EMPTY_SNAPSHOT, removed: true }));
  let size = 0;
  for (const [repo_root, picture] of pictures) {
    if (sent.get(repo_root) === toMark(picture)) continue;
    size += Buffer.byteLength(JSON.stringify(picture));
    if (size > MAX_MESSAGE_BYTES && changes.length > 0) break;
    changes.push({ repo_root, ...picture, removed: false });
  }
  return changes;
};

const toMark = (picture: RepositorySnapshot): string => String(Bun.hash(JSON.stringify(picture)));

const EMPTY_SNAPSHOT: RepositorySnapshot = { branch: "", remote_origin: "", unified_diff: "" };

const createTracked = (): TrackedChat => ({
  known: Promise.resolve(),
  roots: new Set(),
  paths: new Set(),
  readers: new Set(),
  pictures: new Map(),
  scanned_at: undefined,
  problem: "",
  failing: new Set<string>(),
  isScanning: false,
  wanted: false,
  last: Number.NEGATIVE_INFINITY,
  soon: undefined,
  regular: undefined,
});

/** Moves an entry to the end; beyond `most` the first one is removed. */
const moveToEnd = (set: Set<string>, one: string, most: number): void => {
  set.delete(one);
  set.add(one);
  for (const first of set) {
    if (set.size <= most) return;
    set.delete(first);
  }
};
