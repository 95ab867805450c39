// The repositories that chats work on: remembers what their tools touch, looks at them while someone watches (after tools, on request,
// each half minute, never more often than once a second), and tells what has changed since it was told last (facts/chats 2.11, rules
// GS-1 to GS-5). One look serves all who watch a chat; nobody is told faster than they read.
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
/** Bytes; a single repository may be a little more. */
const MAX_MESSAGE_BYTES = 3 * 1024 * 1024;
/** Paths in which there is no repository yet. */
const MAX_PATHS = 32;

export type GitWatcher = {
  /** Sends a message; false when the reader is still busy with the last one: `GitWatch.tell` says when he is not. */
  send(message: GitMessage): boolean;
};

export type GitWatch = { refresh(): void; tell(): void; stop(): void };

type Reader = { readonly to: GitWatcher; readonly sent: Map<string, string>; owes: boolean; failed: string };

export type GitWatchOptions = GitOptions & {
  readonly record: GitRecord;
  /** The agent's: shown where nothing is known of what a chat works on. */
  readonly folder: () => string;
};

type Tracked = {
  /** Resolves when what an earlier daemon has written down is in. */
  known: Promise<void>;
  /** In the order in which they were touched. */
  readonly roots: Set<string>;
  readonly paths: Set<string>;
  readonly readers: Set<Reader>;
  pictures: Map<string, Picture>;
  scanned_at: string | undefined;
  problem: string;
  /** Could not be looked at the last time: half made or half removed, or broken. */
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

  /** Tools of these chats have been at these paths; `changed`: they may have written there. */
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

  /** The same for a command that begins to run in `directory`, or has ended. */
  async ran(chats: readonly string[], command: string, directory: string, ended: boolean): Promise<void> {
    await this.touched(chats, await foldersAmong(placesIn(command, directory)), ended);
  }

  /** Tells the state as it is and then what changes. */
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

  /** What is checked out where; the repository that was touched last comes last. */
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

  /** What was touched since comes behind what was written down. */
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

  /** The repositories a chat works on, or the one that the agent's folder is in. */
  async #listShown({ roots }: Tracked): Promise<readonly string[]> {
    if (roots.size > 0) return [...roots];
    const around = await findRepository(this.#options.folder());
    return around === undefined ? [] : [around];
  }

  /** A repository may have been made where none was. */
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

/** Repositories that are not as the reader knows them, as many as one message takes. */
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

/** Puts it last; beyond `most` the first one goes. */
const latest = (set: Set<string>, one: string, most: number): void => {
  set.delete(one);
  set.add(one);
  for (const first of set) {
    if (set.size <= most) return;
    set.delete(first);
  }
};
