// Serializes checks per item: an event during a check triggers another one afterwards. For keepers, which compare actual with desired state
// and must tolerate a crash at any point.

export class CheckQueue {
  readonly #checkOnce: (id: string) => Promise<void>;
  readonly #onError: (id: string, error: unknown) => "again" | "later";
  readonly #running = new Map<string, Promise<void>>();
  readonly #pending = new Set<string>();
  #isStopped = false;

  /** `onError` decides whether to repeat a failed check immediately. */
  constructor(checkOnce: (id: string) => Promise<void>, onError: (id: string, error: unknown) => "again" | "later") {
    this.#checkOnce = checkOnce;
    this.#onError = onError;
  }

  /** Resolves when no event has arrived since the last check. Never rejects. */
  check(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running) {
      this.#pending.add(id);
      return running;
    }
    const check = this.#checkUntilQuiet(id).finally(() => this.#running.delete(id));
    this.#running.set(id, check);
    return check;
  }

  /** Resolves when no check is running. */
  async whenSettled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Prevents further checks. */
  stop(): Promise<void> {
    this.#isStopped = true;
    return this.whenSettled();
  }

  async #checkUntilQuiet(id: string): Promise<void> {
    do {
      this.#pending.delete(id);
      if (this.#isStopped) return;
      try {
        await this.#checkOnce(id);
      } catch (error) {
        if (this.#onError(id, error) === "again") this.#pending.add(id);
      }
    } while (this.#pending.has(id));
  }
}
