// Orders the answers to a list's requests against the events that arrive while the requests run: an answer may be older than an event.

/** The requests of one live list. */
export class ListRequests {
  #begun = 0;
  #applied = 0;
  #running = 0;
  /** The latest request that had begun when an entry changed, by the entry's ID. Only while requests run. */
  readonly #changes = new Map<string, number>();

  /** Notes that an entry was changed by an event or on this page. */
  noteChange(id: string): void {
    if (this.#running > 0) this.#changes.set(id, this.#begun);
  }

  /**
   * Sends a request and applies its answer, unless the answer to a later one has been applied. `isOutdated` tells which entries of the answer
   * may be older than what is known. Rejects if the request does.
   */
  async load<T>(
    send: () => Promise<T>,
    apply: (answer: T, isOutdated: (id: string) => boolean) => void,
  ): Promise<void> {
    const number = ++this.#begun;
    this.#running++;
    try {
      const answer = await send();
      if (number < this.#applied) return;
      this.#applied = number;
      apply(answer, (id) => (this.#changes.get(id) ?? 0) >= number);
    } finally {
      if (--this.#running === 0) this.#changes.clear();
    }
  }
}
