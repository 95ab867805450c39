// Makes named operations idempotent for callers that may have lost the response: the same name gets the same result. Bounded.

const MAX_KEPT = 256;

export class Once<T> {
  readonly #answers = new Map<string, Promise<T>>();

  /** Returns the first result under this name. A failed operation has changed nothing and may be retried. */
  once(name: string, work: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(name);
    if (known) return known;
    const answer = work();
    this.#answers.set(name, answer);
    answer.catch(() => this.#answers.delete(name));
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= MAX_KEPT) break;
      this.#answers.delete(oldest);
    }
    return answer;
  }
}
