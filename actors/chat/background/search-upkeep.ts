// Merges what commits add to the index of messages and titles, a slice at a time and each slice a commit of its own, so that searches
// look into few pieces and no commit ever waits for a merge (rule FS-6). Told by chats of what they have written.
import { log } from "#base/log.ts";
import { mergeSearch, readPieces, SEARCH_TABLES, type SearchTable } from "#db/chats/search.ts";
import type { Store } from "#db/engine/store.ts";
import type { Chore } from "../../runtime/chore.ts";

/** Pieces that may lie about: each commit adds one, and a search looks into every one. */
const PIECES = 64;

export class SearchUpkeep implements Chore {
  readonly #store: Pick<Store, "get" | "commit">;
  #fresh = 0;
  #isStopping = false;
  #running: Promise<void> | undefined;

  constructor(store: Pick<Store, "get" | "commit">) {
    this.#store = store;
  }

  /** A commit has added to the index. */
  note(): void {
    this.#fresh += 1;
    if (this.#fresh >= PIECES) void this.run();
  }

  /** Now and then, also when little is written. */
  sweep(): void {
    if (this.#fresh > 0) void this.run();
  }

  /** Merges until there is nothing to merge; never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#merge().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async idle(): Promise<void> {
    await this.#running;
  }

  stop(): Promise<void> {
    this.#isStopping = true;
    return this.idle();
  }

  async #merge(): Promise<void> {
    this.#fresh = 0;
    try {
      for (const table of SEARCH_TABLES) while (await this.#slice(table));
    } catch (error) {
      // The next time finds the same work.
      log("chats").warn("the search index was not merged: {error}", { error });
    }
  }

  /** False when there was nothing to do. */
  async #slice(table: SearchTable): Promise<boolean> {
    if (this.#isStopping) return false;
    const before = await this.#store.get(readPieces(table));
    await this.#store.commit([mergeSearch(table)]);
    return (await this.#store.get(readPieces(table))) !== before;
  }
}
