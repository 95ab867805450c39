// Work that comes in a burst, spread over turns of the event loop: anyone who waits here is let through one a turn, so that what else is
// due (other requests, reads, pings) is served in between. Used where hundreds of the same can arrive together, each taking a millisecond.
export class Pace {
  readonly #waiting: (() => void)[] = [];
  /** Someone has been let through in this turn. */
  #taken = false;

  /** Resolves immediately for the first caller in this turn of the event loop, for others in turn. */
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
