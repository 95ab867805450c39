// Spreads a burst of work over turns of the event loop: one caller proceeds per turn, so that other requests, reads and pings are served
// between them. Used where hundreds of tasks of a millisecond each can arrive together.
export class TurnThrottle {
  readonly #waiting: (() => void)[] = [];
  /** True when a caller has proceeded in this turn. */
  #isTurnTaken = false;

  /** Resolves immediately for the first caller in this turn of the event loop, and for one more per turn after that. */
  next(): Promise<void> {
    if (!this.#isTurnTaken) {
      this.#isTurnTaken = true;
      setImmediate(() => this.#startTurn());
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #startTurn(): void {
    const next = this.#waiting.shift();
    if (!next) {
      this.#isTurnTaken = false;
      return;
    }
    setImmediate(() => this.#startTurn());
    next();
  }
}
