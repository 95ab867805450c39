// The provisioners' slots: jobs that are on disk as pending wait here for their turn, the oldest of the most urgent first, each for a
// worker that has its tags: the built-in one, or one of a pool. The queue lives in memory only; after a start the owners submit their
// pending jobs again (rules JB-1 to JB-3, PV-8).

import { uuid } from "#base/ids.ts";

/** Human-started work goes before prebuilds (facts/platform 2.1). */
export type Urgency = "person" | "background";

export type QueuedJob = {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly created_at: number;
  readonly urgency: Urgency;
  /** What a worker must have; default: what the built-in one has. */
  readonly tags?: Tags;
  /** Of which part its owner is (src/base/parts.ts). */
  readonly part?: number | undefined;
  /** Does the work and reports to the job's owner by itself; must not reject. */
  run(signal: AbortSignal, worker: Worker): Promise<void>;
};

export type Tags = Readonly<Record<string, string>>;
/** `places`: where what it brings to life lives, by provisioner; absent for the built-in one. */
export type Worker = { readonly id: string; readonly name: string; readonly places?: Tags };

/** Workers that come and go (src/provisioners/external/workers.ts). */
export interface WorkerPool {
  readonly hasFree: boolean;
  workersFor(tags: Tags): readonly string[];
  /** Keeps a slot for the job until it is released; undefined when no fitting worker has one. */
  take(job_id: string, tags: Tags): Worker | undefined;
  release(job_id: string): void;
  onChange(listener: () => void): void;
}

type Running = {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  readonly part: number | undefined;
  again?: QueuedJob;
};

/** Tags of the built-in worker: it takes the jobs that ask for nothing else. */
const WORKER_TAGS: Readonly<Record<string, string>> = { scope: "organization", owner: "" };

export class JobQueue {
  /** This process is the only worker. */
  readonly worker: { readonly id: string; readonly name: string };
  readonly #slots: number;
  readonly #pool: WorkerPool | undefined;
  readonly #waiting: QueuedJob[] = [];
  /** Jobs that none of the workers could take; in no order. */
  readonly #parked = new Map<string, QueuedJob>();
  readonly #running = new Map<string, Running>();
  #builtIn = 0;
  #stopped = false;
  readonly #listeners: (() => void)[] = [];
  #workersVersion = 0;

  /** `slots` are those of the built-in worker, `worker_id` is its id; default: a new one at each start. */
  constructor(slots: number, pool?: WorkerPool, worker_id: string = uuid()) {
    this.worker = { id: worker_id, name: "built-in" };
    this.#slots = slots;
    this.#pool = pool;
    pool?.onChange(() => {
      this.#workersVersion += 1;
      this.#sort();
      this.#changed();
    });
  }

  /** Called after every change of `position` or `workersFor`, many times a second at worst; for the life of the process. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Raised whenever `workersFor` may answer otherwise for tags that are not those of the built-in worker. */
  get workersVersion(): number {
    return this.#workersVersion;
  }

  /**
   * Call after the pending job is on disk. Starts it at once when a slot is free. A job that still runs here is begun anew once that
   * run has ended; one that no worker can take waits until one comes.
   */
  submit(job: QueuedJob): void {
    const running = this.#running.get(job.id);
    if (running) running.again = job;
    else {
      this.#place(job);
      this.#fill();
      this.#changed();
    }
  }

  /** Takes a waiting job out, or tells a running one to end; its `run` reports what came of it. */
  cancel(id: string, reason: string): void {
    const at = this.#waiting.findIndex((job) => job.id === id);
    if (at >= 0) {
      this.#waiting.splice(at, 1);
      this.#changed();
    }
    this.#parked.delete(id);
    const running = this.#running.get(id);
    if (running) delete running.again;
    running?.abort.abort(new Error(reason));
  }

  /** The workers that could take a job with these tags. */
  workersFor(tags: Tags): readonly string[] {
    return isForBuiltIn(tags) ? [this.worker.id] : (this.#pool?.workersFor(tags) ?? []);
  }

  /** Jobs that run or wait here. */
  holds(id: string): boolean {
    return this.#running.has(id) || this.#parked.has(id) || this.#waiting.some((job) => job.id === id);
  }

  /** Place in the queue counted from 1, and its length; 0 for a job that does not wait or that no worker could take. */
  position(id: string): { queue_position: number; queue_size: number } {
    return { queue_position: this.#waiting.findIndex((job) => job.id === id) + 1, queue_size: this.#waiting.length };
  }

  /** Starts nothing more and tells what runs that the server goes away; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { abort } of this.#running.values()) abort.abort(new ServerStopping());
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Other nodes go on with the jobs of these parts: here they end as they do with the server. Resolves when none runs. */
  async leave(isLeaving: (part: number) => boolean): Promise<void> {
    const leaves = ({ part }: Pick<QueuedJob, "part">): boolean => part !== undefined && isLeaving(part);
    for (const job of this.#waiting.filter(leaves)) this.#waiting.splice(this.#waiting.indexOf(job), 1);
    for (const job of [...this.#parked.values()].filter(leaves)) this.#parked.delete(job.id);
    const running = [...this.#running.values()].filter(leaves);
    for (const one of running) {
      delete one.again;
      one.abort.abort(new ServerStopping());
    }
    this.#changed();
    await Promise.all(running.map(({ done }) => done));
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #place(job: QueuedJob): void {
    if (this.workersFor(job.tags ?? {}).length === 0) {
      this.#parked.set(job.id, job);
      return;
    }
    const at = this.#waiting.findIndex((other) => before(job, other));
    this.#waiting.splice(at < 0 ? this.#waiting.length : at, 0, job);
  }

  /** Workers have come, gone or become free. */
  #sort(): void {
    if (this.#stopped) return;
    const isLost = (job: QueuedJob): boolean => this.workersFor(job.tags ?? {}).length === 0;
    for (const job of this.#waiting.filter((one) => !isForBuiltIn(one.tags) && isLost(one))) {
      this.#waiting.splice(this.#waiting.indexOf(job), 1);
      this.#parked.set(job.id, job);
    }
    for (const job of [...this.#parked.values()]) {
      if (isLost(job)) continue;
      this.#parked.delete(job.id);
      this.#place(job);
    }
    this.#fill();
  }

  #fill(): void {
    for (let i = 0; i < this.#waiting.length && !this.#stopped && this.#hasFree(); ) {
      const job = this.#waiting[i] as QueuedJob;
      const worker = this.#take(job);
      if (worker) {
        this.#waiting.splice(i, 1);
        this.#start(job, worker);
      } else i++;
    }
  }

  #hasFree(): boolean {
    return this.#builtIn < this.#slots || this.#pool?.hasFree === true;
  }

  #take(job: QueuedJob): Worker | undefined {
    if (!isForBuiltIn(job.tags)) return this.#pool?.take(job.id, job.tags ?? {});
    return this.#builtIn < this.#slots ? this.worker : undefined;
  }

  #start(job: QueuedJob, worker: Worker): void {
    const abort = new AbortController();
    const isBuiltIn = worker === this.worker;
    if (isBuiltIn) this.#builtIn += 1;
    const done = job.run(abort.signal, worker).finally(() => {
      const again = this.#running.get(job.id)?.again;
      this.#running.delete(job.id);
      if (again) this.#place(again);
      if (isBuiltIn) this.#builtIn -= 1;
      else this.#pool?.release(job.id);
      this.#fill();
      this.#changed();
    });
    this.#running.set(job.id, { abort, done, part: job.part });
  }
}

/** The reason of an abort that is not a cancellation: the job stays as it is on disk and goes on after the next start. */
export class ServerStopping extends Error {
  override readonly name = "ServerStopping";
  constructor() {
    super("the server is stopping");
  }
}

/** Whether the built-in worker takes a job with these tags. */
export const isForBuiltIn = (tags: Tags = {}): boolean =>
  Object.entries(tags).every(([key, value]) => WORKER_TAGS[key] === value);

const before = (a: QueuedJob, b: QueuedJob): boolean =>
  a.urgency === b.urgency ? a.created_at < b.created_at : a.urgency === "person";
