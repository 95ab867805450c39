// The repositories that chats work on. Records what their tools touch, scans while someone watches (after tools, on request, every half
// minute, at most once a second), and sends what has changed since the last message (facts/chats 2.11, rules GS-1 to GS-5). One scan serves
// all watchers of a chat; a slow reader gets fewer messages.
import { rfc3339, type Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { GitMessage, GitReferences, GitRepository } from "#schema/agents/git-message.ts";
import type { GitRecord } from "./record.ts";
import { findRepository, foldersAmong, isRepository, placesIn } from "./repositories.ts";
import { type GitOptions, loadReference, type Picture, scanRepository } from "./scan.ts";

const COOLDOWN_MS = 1_000;
const LOOK_MS = 30_000;
const MAX_CHATS = 256;
const MAX_ROOTS = 16;
/** Bytes of a message; a single repository may exceed it slightly. */
const MAX_MESSAGE_BYTES = 3 * 1024 * 1024;
/** Maximum number of remembered paths that are not in a repository yet. */
const MAX_PATHS = 32;

export type GitWatcher = {
  /** Sends a message. Returns false while the reader is still busy with the previous one; `GitWatch.tell` signals that it is ready. */
  send(message: GitMessage): boolean;
};

export type GitWatch = { refresh(): void; tell(): void; stop(): void };

type Reader = { readonly to: GitWatcher; readonly sent: Map<string, string>; owes: boolean; failed: string };

export type GitWatchOptions = GitOptions & {
  readonly record: GitRecord;
  /** The agent's folder, shown if the chat has touched no repository. */
  readonly folder: () => string;
};

type Tracked = {
  /** Resolves when the record of an earlier daemon is loaded. */
  known: Promise<void>;
  /** In the order in which they were touched. */
  readonly roots: Set<string>;
  readonly paths: Set<string>;
  readonly readers: Set<Reader>;
  pictures: Map<string, Picture>;
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
  readonly #chats = new Map<string, Tracked>();

  constructor(options: GitWatchOptions) {
    this.#options = options;
  }

  /** Records that tools of these chats accessed these paths. `changed`: they may have written there. */
  async touched(chats: readonly string[], paths: readonly string[], changed: boolean): Promise<void> {
    for (const path of paths) {
      const root = await findRepository(path);
      for (const chat of chats) {
        const tracked = this.#of(chat);
        await tracked.known;
        const isNew = root === undefined ? !tracked.paths.has(path) : !tracked.roots.has(root);
        if (root === undefined) latest(tracked.paths, path, MAX_PATHS);
        else latest(tracked.roots, root, MAX_ROOTS);
        if (isNew) await this.#keep(chat, tracked);
        if ((isNew && root !== undefined) || changed) this.#want(tracked);
      }
    }
  }

  /** Records a command that starts in `directory`, or has `ended`. */
  async ran(chats: readonly string[], command: string, directory: string, ended: boolean): Promise<void> {
    await this.touched(chats, await foldersAmong(placesIn(command, directory)), ended);
  }

  /** Sends the current state and then each change. */
  watch(chat: string, to: GitWatcher): GitWatch {
    const tracked = this.#of(chat);
    const reader: Reader = { to, sent: new Map(), owes: false, failed: "" };
    tracked.readers.add(reader);
    tracked.regular ??= this.#options.clock.every(LOOK_MS, () => this.#want(tracked));
    this.#want(tracked);
    return {
      refresh: () => {
        reader.owes = true;
        this.#want(tracked);
      },
      tell: () => this.#tell(tracked, reader),
      stop: () => {
        tracked.readers.delete(reader);
        if (tracked.readers.size > 0) return;
        for (const timer of [tracked.soon, tracked.regular]) timer?.cancel();
        Object.assign(tracked, { soon: undefined, regular: undefined, wanted: false });
      },
    };
  }

  /** Returns what is checked out where; the repository touched last comes last. */
  async references(chat: string): Promise<GitReferences> {
    const tracked = this.#of(chat);
    await tracked.known;
    await this.#locate(tracked);
    const repositories: GitReferences["repositories"] = [];
    for (const root of tracked.roots) {
      const found = await loadReference(this.#options, root).catch(() => undefined);
      if (found) repositories.push(found);
    }
    return { repositories };
  }

  #of(chat: string): Tracked {
    const known = this.#chats.get(chat);
    const tracked = known ?? emptyTracked();
    if (!known) tracked.known = this.#recall(chat, tracked);
    this.#chats.delete(chat);
    this.#chats.set(chat, tracked);
    for (const [id, { readers }] of this.#chats) {
      if (this.#chats.size <= MAX_CHATS) break;
      if (readers.size === 0) this.#chats.delete(id);
    }
    return tracked;
  }

  /** Loads the record and appends what was touched since. */
  async #recall(chat: string, { roots, paths }: Tracked): Promise<void> {
    const kept = await this.#options.record.read(chat);
    for (const root of kept?.roots ?? []) latest(roots, root, MAX_ROOTS);
    for (const path of kept?.paths ?? []) latest(paths, path, MAX_PATHS);
  }

  #keep(chat: string, { roots, paths }: Tracked): Promise<void> {
    return this.#options.record.write(chat, { roots: [...roots], paths: [...paths] });
  }

  #want(tracked: Tracked): void {
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

  async #scan(tracked: Tracked): Promise<void> {
    const { clock } = this.#options;
    tracked.isScanning = true;
    tracked.wanted = false;
    const pictures = new Map<string, Picture>();
    const failing = new Set<string>();
    tracked.problem = "";
    await tracked.known;
    await this.#locate(tracked);
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
      scanned_at: rfc3339(clock.now()),
      isScanning: false,
      last: clock.monotonic(),
    });
    for (const reader of tracked.readers) this.#tell(tracked, reader);
    if (tracked.wanted) this.#want(tracked);
  }

  /** Returns the repositories that a chat works on, or else the one around the agent's folder. */
  async #listShown({ roots }: Tracked): Promise<readonly string[]> {
    if (roots.size > 0) return [...roots];
    const around = await findRepository(this.#options.folder());
    return around === undefined ? [] : [around];
  }

  /** A repository may have been created where there was none. */
  async #locate(tracked: Tracked): Promise<void> {
    for (const path of tracked.paths) {
      const root = await findRepository(path);
      if (root === undefined) continue;
      tracked.paths.delete(path);
      latest(tracked.roots, root, MAX_ROOTS);
    }
  }

  #tell(tracked: Tracked, reader: Reader): void {
    const { pictures, scanned_at, problem } = tracked;
    if (scanned_at === undefined) return;
    if (problem !== reader.failed) {
      if (problem !== "" && !reader.to.send({ type: "error", message: problem })) return;
      reader.failed = problem;
    }
    for (;;) {
      const news = collectNews(pictures, reader);
      if (news.length === 0 && !reader.owes) return;
      if (!reader.to.send({ type: "changes", scanned_at, repositories: news })) return;
      reader.owes = false;
      for (const { repo_root, removed } of news) {
        const picture = pictures.get(repo_root);
        if (removed || !picture) reader.sent.delete(repo_root);
        else reader.sent.set(repo_root, toMark(picture));
      }
    }
  }
}

/** Returns the repositories that differ from what the reader has, as many as fit into one message. */
const collectNews = (pictures: ReadonlyMap<string, Picture>, { sent }: Pick<Reader, "sent">): GitRepository[] => {
  const gone = [...sent.keys()].filter((root) => !pictures.has(root));
  const news: GitRepository[] = gone.map((repo_root) => ({ repo_root, ...NOTHING, removed: true }));
  let size = 0;
  for (const [repo_root, picture] of pictures) {
    if (sent.get(repo_root) === toMark(picture)) continue;
    size += Buffer.byteLength(JSON.stringify(picture));
    if (size > MAX_MESSAGE_BYTES && news.length > 0) break;
    news.push({ repo_root, ...picture, removed: false });
  }
  return news;
};

const toMark = (picture: Picture): string => String(Bun.hash(JSON.stringify(picture)));

const NOTHING: Picture = { branch: "", remote_origin: "", unified_diff: "" };

const emptyTracked = (): Tracked => ({
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
const latest = (set: Set<string>, one: string, most: number): void => {
  set.delete(one);
  set.add(one);
  for (const first of set) {
    if (set.size <= most) return;
    set.delete(first);
  }
};
