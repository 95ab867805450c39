// Workers whose store is closed, for the next store of the same process: a Worker takes 8 to 18 ms of the processor to begin, and tests open a
// store for each of hundreds of servers.

const MOST = 4;

export class SpareWorkers {
  readonly #spare: Worker[] = [];
  readonly #make: () => Worker;

  constructor(make: () => Worker) {
    this.#make = make;
  }

  /** One that keeps no process alive and that nobody else has. */
  take(): Worker {
    const worker = this.#spare.pop() ?? this.#make();
    worker.unref();
    return worker;
  }

  /** Takes back one that has nothing of the closed store any more. */
  leave(worker: Worker): void {
    worker.onmessage = null;
    worker.onerror = () => void this.#spare.splice(0, Infinity, ...this.#spare.filter((one) => one !== worker));
    worker.unref();
    if (this.#spare.length < MOST) this.#spare.push(worker);
    else worker.terminate();
  }
}
