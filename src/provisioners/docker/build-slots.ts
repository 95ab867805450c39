// Limits concurrent image builds. They take long and run what repositories contain, so a few run at a time, one for each user, and no
// user's builds block those of others.

type Waiting = { readonly owner_id: string; readonly begin: () => void };

export class BuildSlots {
  readonly #slots: number;
  /** Owners with a running build. */
  readonly #busy = new Set<string>();
  #waiting: Waiting[] = [];

  constructor(limit: number) {
    this.#slots = limit;
  }

  /** Waits for a slot, calling `onWait` if none is free. Returns a disposable that releases it. Rejects with the signal's reason. */
  async acquire(owner_id: string, signal: AbortSignal, onWait: () => void): Promise<Disposable> {
    signal.throwIfAborted();
    if (!this.#isFree(owner_id)) {
      onWait();
      await this.#waitForSlot(owner_id, signal);
    } else this.#busy.add(owner_id);
    return { [Symbol.dispose]: () => this.#release(owner_id) };
  }

  #isFree(owner_id: string): boolean {
    return this.#busy.size < this.#slots && !this.#busy.has(owner_id);
  }

  #waitForSlot(owner_id: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== one);
        reject(signal.reason);
      };
      const begin = (): void => {
        signal.removeEventListener("abort", onAbort);
        this.#busy.add(owner_id);
        resolve();
      };
      const one = { owner_id, begin };
      this.#waiting.push(one);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  #release(owner_id: string): void {
    this.#busy.delete(owner_id);
    const next = this.#waiting.find((one) => this.#isFree(one.owner_id));
    if (!next) return;
    this.#waiting = this.#waiting.filter((one) => one !== next);
    next.begin();
  }
}
