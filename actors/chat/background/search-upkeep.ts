// Merges new entries into the search index of messages and titles, in slices with one commit each, so that searches read few segments and
// no commit waits for a long merge (rule FS-6). Chats report what they have written.
import { log } from "#base/log.ts";
import { mergeSearch, readSegments, SEARCH_TABLES, type SearchTable } from "#db/chats/search.ts";
import type { Store } from "#db/engine/store.ts";
import type { Chore } from "../../runtime/chore.ts";

/** Maximum unmerged segments: each commit adds one, and a search reads all of them. */
const MAX_SEGMENTS = 64;

export class SearchUpkeep implements Chore {
  readonly #store: Pick<Store, "get" | "commit">;
  #unmergedCount = 0;
  #isStopping = false;
  #running: Promise<void> | undefined;

  constructor(store: Pick<Store, "get" | "commit">) {
    this.#store = store;
  }

  /** Counts a commit that added to the index. */
  note(): void {
    this.#unmergedCount += 1;
    if (this.#unmergedCount >= MAX_SEGMENTS) void this.run();
  }

  /** Merges periodically, even when little is written. */
  sweep(): void {
    if (this.#unmergedCount > 0) void this.run();
  }

  /** Merges until there is nothing left to merge. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#merge().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async whenIdle(): Promise<void> {
    await this.#running;
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    return this.whenIdle();
  }

  async #merge(): Promise<void> {
    this.#unmergedCount = 0;
    try {
      for (const table of SEARCH_TABLES) while (await this.#mergeSlice(table));
    } catch (error) {
      // The next run finds the same work.
      log("chats").warn("cannot merge the search index: {error}", { error });
    }
  }

  /** Returns false when there was nothing to do. */
  async #mergeSlice(table: SearchTable): Promise<boolean> {
    if (this.#isStopping) return false;
    const before = await this.#store.get(readSegments(table));
    await this.#store.commit([mergeSearch(table)]);
    return (await this.#store.get(readSegments(table))) !== before;
  }
}
