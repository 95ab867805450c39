// What is stored of an agent's lines, as frames for those who begin to follow. A crowd that opens at the same time reads each page once:
// a full page never changes, so it is kept for a while for anyone who asks next. One page goes out in each turn of the event loop, so that
// live lines and everyone else's requests come in between (rule LG-24).
import { Pace } from "#base/pace.ts";
import { type LogPages, logFrames, PAGE_LINES } from "./log-pages.ts";

export type HistoryPage = {
  frames: readonly string[];
  /** The id of its last line; undefined for an empty page. */
  last: number | undefined;
  /** There may be more behind it. */
  isFull: boolean;
};

type Reading = { page: Promise<HistoryPage>; begun: number };

/** Characters of frames kept for those who ask next, of all agents together. */
const KEPT_CHARS = 4 * 1024 * 1024;

export class LogHistory {
  readonly #pages: LogPages;
  readonly #turns = new Pace();
  /** How many read the history of an agent now. */
  readonly #readers = new Map<number, number>();
  readonly #readings = new Map<string, Reading>();
  /** Full pages, the one that was used last at the end. */
  readonly #kept = new Map<string, HistoryPage>();
  #keptChars = 0;
  #order = 0;

  constructor(pages: LogPages) {
    this.#pages = pages;
  }

  /** The page behind `after`: it has every line that was committed before the call, as far as it reaches. */
  async page(agent_id: string, agent_key: number, after: number): Promise<HistoryPage> {
    const key = `${agent_key}:${after}`;
    const asked = ++this.#order;
    for (;;) {
      const kept = this.#use(key);
      const reading = kept ? undefined : (this.#readings.get(key) ?? this.#read(key, agent_id, agent_key, after));
      const page = kept ?? (await reading?.page);
      // A page that ends with the newest line counts only for who asked before it was read.
      if (!page || !(page.isFull || (reading && reading.begun > asked))) continue;
      await this.#turns.next();
      return page;
    }
  }

  /** Someone begins to read the history of an agent; pages are kept until the last one has called what this answers. */
  hold(agent_key: number): () => void {
    this.#readers.set(agent_key, (this.#readers.get(agent_key) ?? 0) + 1);
    return () => {
      const left = (this.#readers.get(agent_key) ?? 1) - 1;
      if (left > 0) this.#readers.set(agent_key, left);
      else this.#forget(agent_key);
    };
  }

  #forget(agent_key: number): void {
    this.#readers.delete(agent_key);
    for (const key of [...this.#kept.keys()]) if (key.startsWith(`${agent_key}:`)) this.#drop(key);
  }

  #read(key: string, agent_id: string, agent_key: number, after: number): Reading {
    const reading: Reading = { begun: ++this.#order, page: this.#stored(agent_id, agent_key, after) };
    this.#readings.set(key, reading);
    const over = (): void => void this.#readings.delete(key);
    reading.page.then((page) => {
      over();
      if (page.isFull && this.#readers.has(agent_key)) this.#keep(key, page);
    }, over);
    return reading;
  }

  async #stored(agent_id: string, agent_key: number, after: number): Promise<HistoryPage> {
    const rows = await this.#pages.read(agent_key, after, Number.MAX_SAFE_INTEGER);
    const frames = logFrames(await this.#pages.shown(agent_id, rows));
    return { frames, last: rows.at(-1)?.id, isFull: rows.length === PAGE_LINES };
  }

  #use(key: string): HistoryPage | undefined {
    const page = this.#kept.get(key);
    if (!page) return undefined;
    this.#kept.delete(key);
    this.#kept.set(key, page);
    return page;
  }

  #keep(key: string, page: HistoryPage): void {
    this.#kept.set(key, page);
    this.#keptChars += countChars(page);
    for (const first of this.#kept.keys()) {
      if (this.#keptChars <= KEPT_CHARS) return;
      this.#drop(first);
    }
  }

  #drop(key: string): void {
    const page = this.#kept.get(key);
    if (!page) return;
    this.#kept.delete(key);
    this.#keptChars -= countChars(page);
  }
}

const countChars = ({ frames }: HistoryPage): number => frames.reduce((sum, { length }) => sum + length, 0);
