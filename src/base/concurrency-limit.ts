// Limits how many tasks run concurrently; the rest wait in order. For work that one caller, or many, can request all together.
export class ConcurrencyLimit {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `most`: number of tasks that run together. */
  constructor(most: number) {
    this.#free = most;
  }

  /** Runs the task when a slot is free, and returns its result. */
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

/** Returns the results of a task for each item, in order. At most `most` tasks run together. */
export const mapConcurrently = <T, R>(
  most: number,
  items: readonly T[],
  task: (item: T) => Promise<R>,
): Promise<R[]> => {
  const limit = new ConcurrencyLimit(most);
  return Promise.all(items.map((item) => limit.run(() => task(item))));
};
