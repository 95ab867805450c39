// A condition variable: `wake` wakes all waiters, and each checks its own condition. Used by readers that wait for bytes, writers that wait
// for window, and openers that wait for a free slot. Waiters check their condition before each wait, so that no wakeup is lost.

export class Wakeup {
  #next: PromiseWithResolvers<void> | undefined;

  /** Resolves at the next `wake`. */
  wait(): Promise<void> {
    this.#next ??= Promise.withResolvers<void>();
    return this.#next.promise;
  }

  wake(): void {
    const waiters = this.#next;
    this.#next = undefined;
    waiters?.resolve();
  }
}
