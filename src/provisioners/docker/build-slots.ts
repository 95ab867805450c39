// Limits concurrent image builds, because they take long and run code of repositories. Each user has at most one running build, so that the
// builds of one user do not block those of others.

type QueuedBuild = { readonly owner_id: string; readonly begin: () => void };

export class BuildSlots {
  readonly #maxBuilds: number;
  /** Owners with a running build. */
  readonly #busyOwners = new Set<string>();
  #queue: QueuedBuild[] = [];

  constructor(maxBuilds: number) {
    this.#maxBuilds = maxBuilds;
  }

  /** Waits for a slot, calling `onWait` if none is free. Returns a disposable that releases it. Rejects with the signal's reason. */
  async acquire(owner_id: string, signal: AbortSignal, onWait: () => void): Promise<Disposable> {
    signal.throwIfAborted();
    if (!this.#canBegin(owner_id)) {
      onWait();
      await this.#waitForSlot(owner_id, signal);
    } else this.#busyOwners.add(owner_id);
    return { [Symbol.dispose]: () => this.#release(owner_id) };
  }

  #canBegin(owner_id: string): boolean {
    return this.#busyOwners.size < this.#maxBuilds && !this.#busyOwners.has(owner_id);
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
    const next = this.#queue.find((queued) => this.#canBegin(queued.owner_id));
    if (!next) return;
    this.#queue = this.#queue.filter((queued) => queued !== next);
    next.begin();
  }
}
