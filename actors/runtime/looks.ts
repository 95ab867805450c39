// Looks at things one at a time each: while one is looked at, news about it are followed by another look. For keepers, whose work is to compare
// what is with what is to be, and which a crash in the middle must not confuse.

export class Looks {
  readonly #lookOnce: (id: string) => Promise<void>;
  readonly #failed: (id: string, error: unknown) => "again" | "later";
  readonly #running = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  #isStopped = false;

  /** `failed` says whether a look that has failed is to be repeated now. */
  constructor(lookOnce: (id: string) => Promise<void>, failed: (id: string, error: unknown) => "again" | "later") {
    this.#lookOnce = lookOnce;
    this.#failed = failed;
  }

  /** Resolves when nothing new was heard since the last look. Never rejects. */
  look(id: string): Promise<void> {
    const running = this.#running.get(id);
    if (running) {
      this.#again.add(id);
      return running;
    }
    const looking = this.#lookUntilQuiet(id).finally(() => this.#running.delete(id));
    this.#running.set(id, looking);
    return looking;
  }

  /** Resolves when no look is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** No look begins after this. */
  stop(): Promise<void> {
    this.#isStopped = true;
    return this.settled();
  }

  async #lookUntilQuiet(id: string): Promise<void> {
    do {
      this.#again.delete(id);
      if (this.#isStopped) return;
      try {
        await this.#lookOnce(id);
      } catch (error) {
        if (this.#failed(id, error) === "again") this.#again.add(id);
      }
    } while (this.#again.has(id));
  }
}
