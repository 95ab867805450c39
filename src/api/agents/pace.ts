// Lets only so many tasks run at a time; the rest wait in order. For reads that a crowd may ask for at once.

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
      // A place that becomes free goes to the first who waits.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
