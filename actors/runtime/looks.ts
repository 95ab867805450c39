// Serializes checks per item: an event during a check triggers another one afterwards. For keepers, which compare actual with desired state
// and must tolerate a crash at any point.

export class Looks {
  readonly #lookOnce: (id: string) => Promise<void>;
  readonly #failed: (id: string, error: unknown) => "again" | "later";
  readonly #running = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  #isStopped = false;

  /** `failed` decides whether to repeat a failed check now. */
  constructor(lookOnce: (id: string) => Promise<void>, failed: (id: string, error: unknown) => "again" | "later") {
    this.#lookOnce = lookOnce;
    this.#failed = failed;
  }

  /** Resolves when no event has arrived since the last check. Never rejects. */
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

  /** Resolves when no check is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  /** Prevents further checks. */
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
