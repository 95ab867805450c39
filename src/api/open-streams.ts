// The event streams (text/event-stream) that are open now, so that a stopping server can end them; Bun's own stop would wait for
// them for ever.

export class OpenStreams {
  readonly #ends = new Set<() => void>();

  /** Remembers how to end a stream until the returned function is called. */
  add(end: () => void): () => void {
    this.#ends.add(end);
    return () => this.#ends.delete(end);
  }

  get size(): number {
    return this.#ends.size;
  }

  endAll(): void {
    for (const end of [...this.#ends]) end();
  }
}
