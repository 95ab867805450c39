// The provisioner's slots: jobs that are on disk as pending wait here for their turn, the oldest of the most urgent first. The queue
// lives in memory only; after a start the owners submit their pending jobs again (rules JB-1 to JB-3).

import { uuid } from "#base/ids.ts";

/** Human-started work goes before prebuilds (facts/platform 2.1). */
export type Urgency = "person" | "background";

export type QueuedJob = {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly urgency: Urgency;
  /** Does the work and reports to the job's owner by itself; must not reject. */
  run(signal: AbortSignal): Promise<void>;
};

/** Tags of the built-in worker: it takes the jobs that ask for nothing else. */
const WORKER_TAGS: Readonly<Record<string, string>> = { scope: "organization", owner: "" };

export class JobQueue {
  /** This process is the only worker; a new id at each start. */
  readonly worker = { id: uuid(), name: "built-in" };
  readonly #slots: number;
  readonly #waiting: QueuedJob[] = [];
  readonly #running = new Map<string, { abort: AbortController; done: Promise<void> }>();
  #stopped = false;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Call after the pending job is on disk. Starts it at once when a slot is free. */
  submit(job: QueuedJob): void {
    const at = this.#waiting.findIndex((other) => before(job, other));
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, job);
    this.#fill();
  }

  /** Takes a waiting job out, or tells a running one to end; its `run` reports what came of it. */
  cancel(id: string, reason: string): void {
    const at = this.#waiting.findIndex((job) => job.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#running.get(id)?.abort.abort(new Error(reason));
  }

  /** The workers that could take a job with these tags. */
  workersFor(tags: Readonly<Record<string, string>>): readonly string[] {
    return Object.entries(tags).every(([key, value]) => WORKER_TAGS[key] === value) ? [this.worker.id] : [];
  }

  /** Jobs that run or wait here. */
  holds(id: string): boolean {
    return this.#running.has(id) || this.#waiting.some((job) => job.id === id);
  }

  /** Place in the queue counted from 1, and its length; 0 for a job that does not wait. */
  position(id: string): { queue_position: number; queue_size: number } {
    return { queue_position: this.#waiting.findIndex((job) => job.id === id) + 1, queue_size: this.#waiting.length };
  }

  /** Starts nothing more and tells what runs that the server goes away; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { abort } of this.#running.values()) abort.abort(new ServerStopping());
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  #fill(): void {
    while (!this.#stopped && this.#running.size < this.#slots) {
      const job = this.#waiting.shift();
      if (!job) return;
      const abort = new AbortController();
      const done = job.run(abort.signal).finally(() => {
        this.#running.delete(job.id);
        this.#fill();
      });
      this.#running.set(job.id, { abort, done });
    }
  }
}

/** The reason of an abort that is not a cancellation: the job stays as it is on disk and goes on after the next start. */
export class ServerStopping extends Error {
  override readonly name = "ServerStopping";
  constructor() {
    super("the server is stopping");
  }
}

const before = (a: QueuedJob, b: QueuedJob): boolean =>
  a.urgency === b.urgency ? a.created_at < b.created_at : a.urgency === "person";
