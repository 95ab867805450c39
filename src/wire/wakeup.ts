// A bell: each waiter wakes with the next ring and checks its own condition. Used where a reader waits for bytes, a
// writer for window, an opener for a free slot. Carries no value, so a ring can never be lost between look and wait.

export class Wakeup {
  #bell: PromiseWithResolvers<void> | undefined;

  /** Settles at the next ring. */
  wait(): Promise<void> {
    this.#bell ??= Promise.withResolvers<void>();
    return this.#bell.promise;
  }

  ring(): void {
    const bell = this.#bell;
    this.#bell = undefined;
    bell?.resolve();
  }
}
