// Limits concurrent image builds, because they take long and run code of repositories. A few builds run at a time, at most one for each
// user, so that a user's builds do not block those of others.

type QueuedBuild = { readonly owner_id: string; readonly begin: () => void };

export class BuildSlots {
  readonly #slots: number;
  /** Owners with a running build. */
  readonly #busyOwners = new Set<string>();
  #queue: QueuedBuild[] = [];

  constructor(limit: number) {
    this.#slots = limit;
  }

  /** Waits for a slot, calling `onWait` if none is free. Returns a disposable that releases it. Rejects with the signal's reason. */
  async acquire(owner_id: string, signal: AbortSignal, onWait: () => void): Promise<Disposable> {
    signal.throwIfAborted();
    if (!this.#isFree(owner_id)) {
      onWait();
      await this.#waitForSlot(owner_id, signal);
    } else this.#busyOwners.add(owner_id);
    return { [Symbol.dispose]: () => this.#release(owner_id) };
  }

  #isFree(owner_id: string): boolean {
    return this.#busyOwners.size < this.#slots && !this.#busyOwners.has(owner_id);
  }

  #waitForSlot(owner_id: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#queue = this.#queue.filter((other) => other !== queued);
        reject(signal.reason);
      };
      const begin = (): void => {
        signal.removeEventListener("abort", onAbort);
        this.#busyOwners.add(owner_id);
        resolve();
      };
      const queued = { owner_id, begin };
      this.#queue.push(queued);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #release(owner_id: string): void {
    this.#busyOwners.delete(owner_id);
    const next = this.#queue.find((one) => this.#isFree(one.owner_id));
    if (!next) return;
    this.#queue = this.#queue.filter((one) => one !== next);
    next.begin();
  }
}
