// Serves the stored part of an agent's log as frames for new followers. Clients that open a log at the same time share each page: a full
// page never changes, so it is cached. One page is sent per turn of the event loop, so that live lines and other requests are not delayed
// (rule LG-24).
import { TurnThrottle } from "#base/loop-pacing.ts";
import { type LogPages, PAGE_LINES, toLogFrames } from "./log-pages.ts";

export type HistoryPage = {
  frames: readonly string[];
  /** The ID of the page's last line; undefined for an empty page. */
  last: number | undefined;
  /** True when more lines may follow. */
  isFull: boolean;
};

type PendingPage = { page: Promise<HistoryPage>; order: number };

/** Maximum characters of cached frames, over all agents. */
const MAX_CACHED_CHARS = 4 * 1024 * 1024;

export class LogHistory {
  readonly #pages: LogPages;
  readonly #turns = new TurnThrottle();
  /** Number of clients that are reading an agent's history. */
  readonly #readers = new Map<number, number>();
  readonly #pendingPages = new Map<string, PendingPage>();
  /** Full pages, least recently used first. */
  readonly #cachedPages = new Map<string, HistoryPage>();
  #cachedChars = 0;
  #lastOrder = 0;

  constructor(pages: LogPages) {
    this.#pages = pages;
  }

  /** Returns the page after line `after`. Up to the page's limit, it contains every line committed before the call. */
  async page(agent_id: string, agent_key: number, after: number): Promise<HistoryPage> {
    const key = `${agent_key}:${after}`;
    const requestOrder = ++this.#lastOrder;
    for (;;) {
      const cachedPage = this.#touch(key);
      const pending = cachedPage
        ? undefined
        : (this.#pendingPages.get(key) ?? this.#read(key, agent_id, agent_key, after));
      const page = cachedPage ?? (await pending?.page);
      // A page that is not full may only be used by callers that asked before it was read.
      if (!page || !(page.isFull || (pending && pending.order > requestOrder))) continue;
      await this.#turns.next();
      return page;
    }
  }

  /**
   * Registers a reader of an agent's history and returns a function that unregisters it. Pages stay cached until the last reader has left.
   */
  hold(agent_key: number): () => void {
    this.#readers.set(agent_key, (this.#readers.get(agent_key) ?? 0) + 1);
    return () => {
      const readerCount = (this.#readers.get(agent_key) ?? 1) - 1;
      if (readerCount > 0) this.#readers.set(agent_key, readerCount);
      else this.#evict(agent_key);
    };
  }

  #evict(agent_key: number): void {
    this.#readers.delete(agent_key);
    for (const key of [...this.#cachedPages.keys()]) if (key.startsWith(`${agent_key}:`)) this.#drop(key);
  }

  #read(key: string, agent_id: string, agent_key: number, after: number): PendingPage {
    const pending: PendingPage = { order: ++this.#lastOrder, page: this.#loadPage(agent_id, agent_key, after) };
    this.#pendingPages.set(key, pending);
    const onDone = (): void => void this.#pendingPages.delete(key);
    pending.page.then((page) => {
      onDone();
      if (page.isFull && this.#readers.has(agent_key)) this.#cache(key, page);
    }, onDone);
    return pending;
  }

  async #loadPage(agent_id: string, agent_key: number, after: number): Promise<HistoryPage> {
    const rows = await this.#pages.read(agent_key, after, Number.MAX_SAFE_INTEGER);
    const frames = toLogFrames(await this.#pages.toLogs(agent_id, rows));
    return { frames, last: rows.at(-1)?.id, isFull: rows.length === PAGE_LINES };
  }

  #touch(key: string): HistoryPage | undefined {
    const page = this.#cachedPages.get(key);
    if (!page) return undefined;
    this.#cachedPages.delete(key);
    this.#cachedPages.set(key, page);
    return page;
  }

  #cache(key: string, page: HistoryPage): void {
    this.#cachedPages.set(key, page);
    this.#cachedChars += countChars(page);
    for (const oldestKey of this.#cachedPages.keys()) {
      if (this.#cachedChars <= MAX_CACHED_CHARS) return;
      this.#drop(oldestKey);
    }
  }

  #drop(key: string): void {
    const page = this.#cachedPages.get(key);
    if (!page) return;
    this.#cachedPages.delete(key);
    this.#cachedChars -= countChars(page);
  }
}

const countChars = ({ frames }: HistoryPage): number => frames.reduce((sum, { length }) => sum + length, 0);
