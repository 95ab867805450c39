// The queue of provisioner jobs. Pending jobs on disk wait here, the most urgent and oldest first, each for a worker with its tags: the
// built-in one or one of a pool. The queue is in memory only; after a start, owners submit their pending jobs again (rules JB-1 to JB-3,
// PV-8).

import { uuid } from "#base/ids.ts";
import { FIRST_SHARD } from "#base/shards.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { isForBuiltIn } from "#src/provisioners/external/tags.ts";
import type { NamedJob, PresentWorker, QueuePosition, QueueView, RemoteQueues, Tags } from "./remote-queues.ts";

export type QueuedJob = NamedJob & {
  /**
   * Does the work and reports to the job's owner on its own; must not reject. `yieldSlot` lets another job begin while this one continues;
   * the job must then limit its concurrency itself. Slots of other workers are kept until the end.
   */
  run(signal: AbortSignal, worker: Worker, yieldSlot: () => void): Promise<void>;
};

/** `places`: where its resources are located, by provisioner; absent for the built-in worker. */
export type Worker = { readonly id: string; readonly name: string; readonly places?: Tags };

/** Workers that connect and disconnect (src/provisioners/external/workers.ts). */
export interface WorkerPool {
  readonly hasFree: boolean;
  workersFor(tags: Tags): readonly string[];
  /** Reserves a slot for the job until it is released. Returns undefined when no matching worker is free. */
  reserveSlot(job_id: string, tags: Tags): Worker | undefined;
  release(job_id: string): void;
  onChange(listener: () => void): void;
  /** The connected workers. */
  readonly present: readonly PresentWorker[];
}

type Running = {
  readonly abort: AbortController;
  readonly done: Promise<void>;
  readonly job: QueuedJob;
  again?: QueuedJob;
};

const NO_SHARD = -1;
/** Maximum queue positions that other nodes see. */
const MAX_VISIBLE_POSITIONS = 5_000;

export class JobQueue {
  /** Identifies this process as a worker. */
  readonly worker: { readonly id: string; readonly name: string };
  readonly #slots: number;
  readonly #pool: WorkerPool | undefined;
  readonly #waiting: QueuedJob[] = [];
  /** Jobs that no connected worker can take, unordered. */
  readonly #parked = new Map<string, QueuedJob>();
  readonly #running = new Map<string, Running>();
  #usedSlots = 0;
  #stopped = false;
  readonly #listeners: ((isOwn: boolean) => void)[] = [];
  #workersVersion = 0;
  readonly #remote: RemoteQueues | undefined;

  /**
   * `slots` and `worker_id` belong to the built-in worker, which by default gets a new ID at each start. `others`: the queues of other
   * nodes, if any.
   */
  constructor(slots: number, pool?: WorkerPool, worker_id: string = uuid(), others?: RemoteQueues) {
    this.worker = { id: worker_id, name: "built-in" };
    this.#slots = slots;
    this.#pool = pool;
    this.#remote = others;
    others?.onChange((workers) => {
      if (workers) this.#workersVersion += 1;
      this.#notifyListeners(false);
    });
    pool?.onChange(() => {
      this.#workersVersion += 1;
      this.#reassign();
      this.#notifyListeners();
    });
  }

  /**
   * Calls the listener after every change of `position` or `workersFor`, which may happen many times a second. There is no unsubscribing.
   * `isOwn`: the change is on this node.
   */
  onChange(listener: (isOwn: boolean) => void): void {
    this.#listeners.push(listener);
  }

  /** Incremented when `workersFor` may have changed for tags other than the built-in worker's. */
  get workersVersion(): number {
    return this.#workersVersion;
  }

  /**
   * Queues a job; call it after the pending job is on disk. Starts it immediately if a slot is free. If an earlier run is still active, the
   * job begins again after that run. A job that no worker can take waits for one. A job for another node's workers is submitted to that
   * node each time.
   */
  submit(job: QueuedJob): void {
    if (this.isElsewhere(job.tags)) {
      const { run: _, ...named } = job;
      this.#remote?.submit(named);
      return;
    }
    const running = this.#running.get(job.id);
    if (running) running.again = job;
    else {
      this.#enqueue(job);
      this.#startWaiting();
      this.#notifyListeners();
    }
  }

  /** Removes a waiting job, or aborts a running one, whose `run` reports the result. */
  cancel(id: string, reason: string): void {
    this.#remote?.cancel(id, reason);
    const index = this.#waiting.findIndex((job) => job.id === id);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      this.#notifyListeners();
    }
    this.#parked.delete(id);
    const running = this.#running.get(id);
    if (running) delete running.again;
    running?.abort.abort(new Error(reason));
  }

  /** Returns the workers that could take a job with these tags. */
  workersFor(tags: Tags): readonly string[] {
    if (isForBuiltIn(tags)) return [this.worker.id];
    return (this.isElsewhere(tags) ? this.#remote : this.#pool)?.workersFor(tags) ?? [];
  }

  /** Returns whether jobs with these tags run on another node. */
  isElsewhere(tags: Tags = {}): boolean {
    return this.#remote?.accepts(tags) ?? false;
  }

  /**
   * Returns whether an open job is already queued. For a job of another node's workers, asks that node, and notifies the owner if the job
   * is not queued there.
   */
  ensureQueued(job: Pick<NamedJob, "id" | "tags" | "of">): boolean {
    if (this.has(job.id)) return true;
    if (!this.isElsewhere(job.tags)) return false;
    this.#remote?.follow(job);
    return true;
  }

  /** Returns whether the job runs or waits here, or was submitted to another node. */
  has(id: string): boolean {
    return this.hasLocally(id) || (this.#remote?.has(id) ?? false);
  }

  /**
   * Returns whether the job runs or waits here. Excludes a job that is ending because its shard moved: if the shard returns, the job must
   * begin again.
   */
  hasLocally(id: string): boolean {
    const running = this.#running.get(id);
    const isContinuing = running !== undefined && (running.again !== undefined || !wasMoved(running.abort.signal));
    return isContinuing || this.#parked.has(id) || this.#waiting.some((job) => job.id === id);
  }

  /**
   * Returns the position in the queue, counted from 1, and its length; 0 for a job that is not waiting or that no worker can take. In a
   * cluster, each node has its own built-in worker, while all nodes share the queue for other workers, so the two are counted separately.
   */
  position(id: string): QueuePosition {
    if (!this.#remote) return toQueuePosition(this.#waiting, id);
    const ownJob = this.#waiting.find((job) => job.id === id);
    if (ownJob) return toQueuePosition(this.#listWaiting(isForBuiltIn(ownJob.tags)), id);
    return this.#remote.position(id) ?? { queue_position: 0, queue_size: this.#waiting.length };
  }

  /** The queue as other nodes see it, without a version. */
  get view(): Omit<QueueView, "version"> {
    const waiting = [true, false].map((builtIn) => {
      const jobs = this.#listWaiting(builtIn);
      return { ids: jobs.slice(0, MAX_VISIBLE_POSITIONS).map(({ id }) => id), size: jobs.length };
    });
    return { waiting, workers: this.#pool?.present ?? [] };
  }

  #listWaiting(builtIn: boolean): QueuedJob[] {
    return this.#waiting.filter(({ tags }) => isForBuiltIn(tags) === builtIn);
  }

  /** Starts no more jobs and aborts running ones because the server stops. Resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { abort } of this.#running.values()) abort.abort(new ServerStopping());
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /**
   * Stops the jobs of leaving rows, as at shutdown, because other nodes continue them. Jobs for connected workers belong to the first node,
   * regardless of their `part`. Resolves when the affected runs have ended.
   */
  async release(isLeaving: IsLeaving): Promise<void> {
    const isLeavingJob = ({ part, tags }: NamedJob): boolean =>
      isLeaving(isForBuiltIn(tags) ? (part ?? NO_SHARD) : FIRST_SHARD);
    this.#remote?.release(isLeaving);
    const leavingJobs = [...this.#waiting, ...this.#parked.values()].filter(isLeavingJob);
    for (const { id } of leavingJobs) this.#drop(id);
    const running = [...this.#running.values()].filter(({ job }) => isLeavingJob(job));
    for (const one of running) {
      delete one.again;
      one.abort.abort(new ServerStopping());
    }
    this.#notifyListeners();
    await Promise.all(running.map(({ done }) => done));
    // The new first node runs the jobs that this node owns. Other nodes submit their jobs again after polling.
    for (const { run: _, ...job } of [...leavingJobs, ...running.map(({ job }) => job)])
      if (!isForBuiltIn(job.tags) && !isLeaving(job.part ?? NO_SHARD)) this.#remote?.follow(job);
  }

  #drop(id: string): void {
    const index = this.#waiting.findIndex((job) => job.id === id);
    if (index >= 0) this.#waiting.splice(index, 1);
    this.#parked.delete(id);
  }

  #notifyListeners(isOwn = true): void {
    for (const listener of this.#listeners) listener(isOwn);
  }

  #enqueue(job: QueuedJob): void {
    if (this.workersFor(job.tags ?? {}).length === 0) {
      this.#parked.set(job.id, job);
      return;
    }
    const index = this.#waiting.findIndex((other) => comesBefore(job, other));
    this.#waiting.splice(index < 0 ? this.#waiting.length : index, 0, job);
  }

  /** Reassigns jobs after workers connected, disconnected or became free. */
  #reassign(): void {
    if (this.#stopped) return;
    const hasNoWorker = (job: QueuedJob): boolean => this.workersFor(job.tags ?? {}).length === 0;
    for (const job of this.#waiting.filter((one) => !isForBuiltIn(one.tags) && hasNoWorker(one))) {
      this.#waiting.splice(this.#waiting.indexOf(job), 1);
      this.#parked.set(job.id, job);
    }
    for (const job of [...this.#parked.values()]) {
      if (hasNoWorker(job)) continue;
      this.#parked.delete(job.id);
      this.#enqueue(job);
    }
    this.#startWaiting();
  }

  #startWaiting(): void {
    for (let i = 0; i < this.#waiting.length && !this.#stopped && this.#hasFree(); ) {
      const job = this.#waiting[i] as QueuedJob;
      const worker = this.#takeWorker(job);
      if (worker) {
        this.#waiting.splice(i, 1);
        this.#start(job, worker);
      } else i++;
    }
  }

  #hasFree(): boolean {
    return this.#usedSlots < this.#slots || this.#pool?.hasFree === true;
  }

  #takeWorker(job: QueuedJob): Worker | undefined {
    if (!isForBuiltIn(job.tags)) return this.#pool?.reserveSlot(job.id, job.tags ?? {});
    return this.#usedSlots < this.#slots ? this.worker : undefined;
  }

  #start(job: QueuedJob, worker: Worker): void {
    const abort = new AbortController();
    const isBuiltIn = worker === this.worker;
    let hasSlot = isBuiltIn;
    if (isBuiltIn) this.#usedSlots += 1;
    const releaseSlot = (): void => {
      if (hasSlot) this.#usedSlots -= 1;
      hasSlot = false;
    };
    const yieldSlot = (): void => {
      releaseSlot();
      this.#startWaiting();
      this.#notifyListeners();
    };
    const done = job.run(abort.signal, worker, yieldSlot).finally(() => {
      const next = this.#running.get(job.id)?.again;
      this.#running.delete(job.id);
      if (next) this.#enqueue(next);
      releaseSlot();
      if (!isBuiltIn) this.#pool?.release(job.id);
      this.#startWaiting();
      this.#notifyListeners();
    });
    this.#running.set(job.id, { abort, done, job });
  }
}

/** The abort reason at shutdown, as opposed to a cancellation: the job stays unchanged on disk and resumes after the next start. */
export class ServerStopping extends Error {
  override readonly name = "ServerStopping";
  constructor() {
    super("the server is stopping");
  }
}

const wasMoved = ({ aborted, reason }: AbortSignal): boolean => aborted && reason instanceof ServerStopping;

const toQueuePosition = (jobs: readonly QueuedJob[], id: string): QueuePosition => ({
  queue_position: jobs.findIndex((job) => job.id === id) + 1,
  queue_size: jobs.length,
});

const comesBefore = (a: QueuedJob, b: QueuedJob): boolean =>
  a.urgency === b.urgency ? a.created_at < b.created_at : a.urgency === "person";
