// A condition variable: each waiter wakes at the next ring and checks its own condition. Used by readers that wait for bytes, writers that
// wait for window, and openers that wait for a free slot. Carries no value, so a ring cannot be lost between check and wait.

export class Wakeup {
  #bell: PromiseWithResolvers<void> | undefined;

  /** Settles at the next ring. */
  wait(): Promise<void> {
    this.#bell ??= Promise.withResolvers<void>();
    return this.#bell.promise;
  }

  wake(): void {
    const bell = this.#bell;
    this.#bell = undefined;
    bell?.resolve();
  }
}
