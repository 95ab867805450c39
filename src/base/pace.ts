// Spreads a burst of work over turns of the event loop: one caller proceeds per turn, so that other requests, reads and pings are served in
// between. Used where hundreds of equal tasks of a millisecond each can arrive together.
export class Pace {
  readonly #waiting: (() => void)[] = [];
  /** True when a caller has proceeded in this turn. */
  #taken = false;

  /** Resolves immediately for the first caller in this turn of the event loop, and for one more per turn after that. */
  next(): Promise<void> {
    if (!this.#taken) {
      this.#taken = true;
      setImmediate(() => this.#turn());
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #turn(): void {
    const next = this.#waiting.shift();
    if (!next) {
      this.#taken = false;
      return;
    }
    setImmediate(() => this.#turn());
    next();
  }
}
