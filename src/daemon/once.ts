// Makes named operations idempotent for callers that may have lost the response: the same name gets the same result. Bounded.

const MAX_KEPT = 256;

export class OnceByName<T> {
  readonly #results = new Map<string, Promise<T>>();

  /** Returns the first result under this name. A failed operation has changed nothing and may be retried. */
  run(name: string, work: () => Promise<T>): Promise<T> {
    const known = this.#results.get(name);
    if (known) return known;
    const answer = work();
    this.#results.set(name, answer);
    answer.catch(() => this.#results.delete(name));
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= MAX_KEPT) break;
      this.#results.delete(oldest);
    }
    return answer;
  }
}
