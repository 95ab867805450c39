// The provisioners' slots: jobs that are on disk as pending wait here for their turn, the oldest of the most urgent first, each for a
// worker that has its tags: the built-in one, or one of a pool. The queue lives in memory only; after a start the owners submit their
// pending jobs again (rules JB-1 to JB-3, PV-8).

import { uuid } from "#base/ids.ts";
import { FIRST_PART } from "#base/parts.ts";
import type { NamedJob, OtherQueues, PlaceInQueue, PresentWorker, QueueView, Tags } from "./other-queues.ts";

export type QueuedJob = NamedJob & {
  /** Does the work and reports to the job's owner on its own; must not reject. */
  run(signal: AbortSignal, worker: Worker): Promise<void>;
};

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
  /** Everyone who is connected now. */
  readonly present: readonly PresentWorker[];
}

type Running = {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  readonly job: QueuedJob;
  again?: QueuedJob;
};

const NO_PART = -1;
/** So many places are told to other nodes. */
const MAX_SHOWN = 5_000;

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
  readonly #listeners: ((isOwn: boolean) => void)[] = [];
  #workersVersion = 0;
  readonly #others: OtherQueues | undefined;

  /** `slots` are those of the built-in worker, `worker_id` is its id; default: a new one at each start. `others`: there are other nodes. */
  constructor(slots: number, pool?: WorkerPool, worker_id: string = uuid(), others?: OtherQueues) {
    this.worker = { id: worker_id, name: "built-in" };
    this.#slots = slots;
    this.#pool = pool;
    this.#others = others;
    others?.onChange((workers) => {
      if (workers) this.#workersVersion += 1;
      this.#changed(false);
    });
    pool?.onChange(() => {
      this.#workersVersion += 1;
      this.#sort();
      this.#changed();
    });
  }

  /** Called after every change of `position` or `workersFor`, many times a second at worst; for the life of the process. Own: not of other nodes. */
  onChange(listener: (isOwn: boolean) => void): void {
    this.#listeners.push(listener);
  }

  /** Raised whenever `workersFor` may answer otherwise for tags that are not those of the built-in worker. */
  get workersVersion(): number {
    return this.#workersVersion;
  }

  /**
   * Call after the pending job is on disk. Starts it immediately when a slot is free. A job that still runs here is begun again once that
   * run has ended; one that no worker can take waits until one comes. Of one that is another node's to run that node is told, each time.
   */
  submit(job: QueuedJob): void {
    if (this.isElsewhere(job.tags)) {
      const { run: _, ...named } = job;
      this.#others?.submit(named);
      return;
    }
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
    this.#others?.cancel(id, reason);
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
    if (isForBuiltIn(tags)) return [this.worker.id];
    return (this.isElsewhere(tags) ? this.#others : this.#pool)?.workersFor(tags) ?? [];
  }

  /** Jobs with these tags are another node's to run. */
  isElsewhere(tags: Tags = {}): boolean {
    return this.#others?.takes(tags) ?? false;
  }

  /** Whether an open job is in a queue already. The node whose workers take it is asked, and its owner is told when it is in none there. */
  takesUp(job: Pick<NamedJob, "id" | "tags" | "of">): boolean {
    if (this.holds(job.id)) return true;
    if (!this.isElsewhere(job.tags)) return false;
    this.#others?.follow(job);
    return true;
  }

  /** Jobs that run or wait here, or were given to another node. */
  holds(id: string): boolean {
    return this.holdsHere(id) || (this.#others?.holds(id) ?? false);
  }

  /** Jobs that run or wait here. One that ends because its part has left does not: where the part returns, it is to be begun again. */
  holdsHere(id: string): boolean {
    const running = this.#running.get(id);
    const goesOn = running !== undefined && (running.again !== undefined || !isLeft(running.abort.signal));
    return goesOn || this.#parked.has(id) || this.#waiting.some((job) => job.id === id);
  }

  /**
   * Place in the queue counted from 1, and its length; 0 for a job that does not wait or that no worker could take. Where there are several
   * nodes each has a built-in worker of its own, and for the others the jobs of all nodes wait in one queue: these are counted apart.
   */
  position(id: string): PlaceInQueue {
    if (!this.#others) return placeIn(this.#waiting, id);
    const own = this.#waiting.find((job) => job.id === id);
    if (own) return placeIn(this.#waitingFor(isForBuiltIn(own.tags)), id);
    return this.#others.position(id) ?? { queue_position: 0, queue_size: this.#waiting.length };
  }

  /** What other nodes show of it, without a version. */
  get view(): Omit<QueueView, "version"> {
    const waiting = [true, false].map((builtIn) => {
      const jobs = this.#waitingFor(builtIn);
      return { ids: jobs.slice(0, MAX_SHOWN).map(({ id }) => id), size: jobs.length };
    });
    return { waiting, workers: this.#pool?.present ?? [] };
  }

  #waitingFor(builtIn: boolean): QueuedJob[] {
    return this.#waiting.filter(({ tags }) => isForBuiltIn(tags) === builtIn);
  }

  /** Starts nothing more and tells what runs that the server goes away; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { abort } of this.#running.values()) abort.abort(new ServerStopping());
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /**
   * Other nodes go on with the jobs of these parts: here they end as they do with the server. Those that workers take or have stay with the
   * workers, at the first node, whoever's they are. Resolves when none runs that leaves.
   */
  async leave(isLeaving: (part: number) => boolean): Promise<void> {
    const leaves = ({ part, tags }: NamedJob): boolean =>
      isLeaving(isForBuiltIn(tags) ? (part ?? NO_PART) : FIRST_PART);
    this.#others?.leave(isLeaving);
    const out = [...this.#waiting, ...this.#parked.values()].filter(leaves);
    for (const { id } of out) this.#drop(id);
    const running = [...this.#running.values()].filter(({ job }) => leaves(job));
    for (const one of running) {
      delete one.again;
      one.abort.abort(new ServerStopping());
    }
    this.#changed();
    await Promise.all(running.map(({ done }) => done));
    // This node's own are the next first node's to run. The nodes of the others find out on their own.
    for (const { run: _, ...job } of [...out, ...running.map(({ job }) => job)])
      if (!isForBuiltIn(job.tags) && !isLeaving(job.part ?? NO_PART)) this.#others?.follow(job);
  }

  #drop(id: string): void {
    const at = this.#waiting.findIndex((job) => job.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#parked.delete(id);
  }

  #changed(isOwn = true): void {
    for (const listener of this.#listeners) listener(isOwn);
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
    this.#running.set(job.id, { abort, done, job });
  }
}

/** The reason of an abort that is not a cancellation: the job stays as it is on disk and continues after the next start. */
export class ServerStopping extends Error {
  override readonly name = "ServerStopping";
  constructor() {
    super("the server is stopping");
  }
}

const isLeft = ({ aborted, reason }: AbortSignal): boolean => aborted && reason instanceof ServerStopping;

/** Whether the built-in worker takes a job with these tags. */
export const isForBuiltIn = (tags: Tags = {}): boolean =>
  Object.entries(tags).every(([key, value]) => WORKER_TAGS[key] === value);

const placeIn = (jobs: readonly QueuedJob[], id: string): PlaceInQueue => ({
  queue_position: jobs.findIndex((job) => job.id === id) + 1,
  queue_size: jobs.length,
});

const before = (a: QueuedJob, b: QueuedJob): boolean =>
  a.urgency === b.urgency ? a.created_at < b.created_at : a.urgency === "person";
