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

/**
 * Returns the results of a task for each item, in order. At most `most` tasks run together. Rejects with the first error, and starts no
 * task after it.
 */
export const mapConcurrently = async <T, R>(
  most: number,
  items: readonly T[],
  task: (item: T) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = new Array(items.length);
  const remaining = items.entries();
  let hasFailed = false;
  const runRemaining = async (): Promise<void> => {
    for (const [index, item] of remaining) {
      try {
        results[index] = await task(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (hasFailed) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, runRemaining));
  return results;
};
