// Limits how many tasks run concurrently; the rest wait in order. For reads that many clients may request at the same time.

export class Pace {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      // A free slot goes to the longest-waiting task.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
