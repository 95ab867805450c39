// Makes named operations idempotent for callers that may have lost the response: the same name gets the same result. Keeps a limited number
// of results.

const MAX_RESULTS = 256;

export class OnceByName<T> {
  readonly #results = new Map<string, Promise<T>>();

  /** Returns the first result under this name. A failed operation has changed nothing and may be retried. */
  run(name: string, work: () => Promise<T>): Promise<T> {
    const existing = this.#results.get(name);
    if (existing) return existing;
    const result = work();
    this.#results.set(name, result);
    result.catch(() => this.#results.delete(name));
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= MAX_RESULTS) break;
      this.#results.delete(oldest);
    }
    return result;
  }
}
