// Applies the answers to a list's requests in the right order relative to live events: an answer may be older than an event that arrived
// during the request.

/** The requests of one live list. */
export class ListRequests {
  #startedCount = 0;
  #lastApplied = 0;
  #runningCount = 0;
  /** By entry ID: the latest request that had begun when the entry changed. Empty while no request runs. */
  readonly #changes = new Map<string, number>();

  /** Notes that an entry was changed by an event or on this page. */
  noteChange(id: string): void {
    if (this.#runningCount > 0) this.#changes.set(id, this.#startedCount);
  }

  /**
   * Sends a request and applies its answer, unless the answer to a later one has been applied. `isOutdated` returns whether an entry of the
   * answer may be older than the entry shown. Rejects if the request does.
   */
  async load<T>(
    send: () => Promise<T>,
    apply: (answer: T, isOutdated: (id: string) => boolean) => void,
  ): Promise<void> {
    const number = ++this.#startedCount;
    this.#runningCount++;
    try {
      const answer = await send();
      if (number < this.#lastApplied) return;
      this.#lastApplied = number;
      apply(answer, (id) => (this.#changes.get(id) ?? 0) >= number);
    } finally {
      if (--this.#runningCount === 0) this.#changes.clear();
    }
  }
}
