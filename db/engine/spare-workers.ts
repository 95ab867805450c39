// Reuses Workers of closed stores for the next store in the same process: starting a Worker takes 8 to 18 ms of CPU time, and tests open a
// store for each of hundreds of servers.

const MAX_SPARE = 4;

export class SpareWorkers {
  readonly #spare: Worker[] = [];
  readonly #make: () => Worker;

  constructor(make: () => Worker) {
    this.#make = make;
  }

  /** Returns an unused Worker that does not keep the process alive. */
  acquire(): Worker {
    const worker = this.#spare.pop() ?? this.#make();
    worker.unref();
    return worker;
  }

  /** Takes back a Worker that holds nothing of the closed store. */
  release(worker: Worker): void {
    worker.onmessage = null;
    worker.onerror = () => void this.#spare.splice(0, Infinity, ...this.#spare.filter((one) => one !== worker));
    worker.unref();
    if (this.#spare.length < MAX_SPARE) this.#spare.push(worker);
    else worker.terminate();
  }
}
