// Does what has a name once, for callers that may have been cut off from the answer: the same name gets the same answer. Bounded.

const MAX_KEPT = 256;

export class Once<T> {
  readonly #answers = new Map<string, Promise<T>>();

  /** The first answer under this name. What has failed has changed nothing and may be tried again. */
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
