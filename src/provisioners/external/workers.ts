// All connected workers: which may take a job, which are free, which have gone silent. The job queue reserves a slot here before it hands
// out a job (rules PV-8 to PV-11).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { ConnectedWorker, type WorkerFacts, type WorkerLink } from "./connected-worker.ts";
import { ALIVE_MS, SILENCE_MS } from "./protocol.ts";
import { mayTake, type Tags, type WorkerPlace } from "./tags.ts";

export class Workers {
  readonly #clock: Clock;
  /** By ID, the least recently used first. */
  readonly #workers = new Map<string, ConnectedWorker>();
  readonly #holders = new Map<string, ConnectedWorker>();
  readonly #listeners: (() => void)[] = [];
  #watch: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers a listener for workers that connect, disconnect or get a free slot. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Adds an authenticated worker. An existing connection with the same ID has broken and is removed. */
  connect(facts: WorkerFacts, link: WorkerLink): ConnectedWorker {
    const before = this.#workers.get(facts.id);
    const worker = new ConnectedWorker(facts, link, this.#clock);
    if (before) {
      this.lost(before, "another connection with its name has taken over");
      before.close("another worker of this name has connected");
    }
    this.#workers.set(facts.id, worker);
    this.#watch ??= this.#clock.every(ALIVE_MS, () => this.#reap());
    this.#changed();
    return worker;
  }

  /** Removes a worker whose connection has ended and fails its jobs. Does nothing the second time. */
  lost(worker: ConnectedWorker, reason: string): void {
    if (this.#workers.get(worker.facts.id) !== worker) return;
    this.#workers.delete(worker.facts.id);
    if (this.#workers.size === 0) this.#stopWatching();
    worker.lose(reason);
    this.#changed();
  }

  /** Handles a message that may have changed the number of free slots. */
  heard(): void {
    this.#changed();
  }

  /** Returns the IDs of the connected workers that could take a job with these tags. */
  workersFor(tags: Tags): readonly string[] {
    return this.#fitting(tags).map(({ facts }) => facts.id);
  }

  /** True if any slot is free. */
  get hasFree(): boolean {
    return [...this.#workers.values()].some(({ free }) => free > 0);
  }

  /** Reserves a slot at the matching worker with the most free slots; returns undefined if none exists. */
  take(job_id: string, tags: Tags): { readonly id: string; readonly name: string; readonly places: Tags } | undefined {
    let best: ConnectedWorker | undefined;
    for (const worker of this.#fitting(tags)) if (worker.free > (best?.free ?? 0)) best = worker;
    if (!best) return undefined;
    best.hold(job_id);
    this.#holders.set(job_id, best);
    // Moves the worker to the end, so that among equals the least recently used one is next.
    this.#workers.delete(best.facts.id);
    this.#workers.set(best.facts.id, best);
    return { id: best.facts.id, name: best.facts.name, places: best.facts.places };
  }

  /** Returns the worker that has a slot reserved for this job. */
  holderOf(job_id: string): ConnectedWorker | undefined {
    return this.#holders.get(job_id);
  }

  /** Releases the slot of a job that has ended. */
  release(job_id: string): void {
    const holder = this.#holders.get(job_id);
    this.#holders.delete(job_id);
    if (holder?.release(job_id)) this.#changed();
  }

  /** The connected workers, with what decides which jobs they may take. */
  get present(): readonly (WorkerPlace & { readonly id: string })[] {
    return [...this.#workers.values()]
      .map(({ facts: { id, organization_id, provisioners, tags, places } }) => ({
        id,
        organization_id,
        provisioners,
        tags,
        places,
      }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Returns the connected workers and their number of jobs. */
  shown(): { readonly name: string; readonly running: number }[] {
    return [...this.#workers.values()].map(({ facts, jobs }) => ({ name: facts.name, running: jobs.length }));
  }

  /** Returns the connected worker with this ID. */
  find(id: string): ConnectedWorker | undefined {
    return this.#workers.get(id);
  }

  /** Closes every connection that was authenticated with this key. */
  closeKey(key_id: string): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.facts.key_id !== key_id) continue;
      this.lost(worker, "its key was removed");
      worker.close("the provisioner key was removed");
    }
  }

  /** Closes all connections because another node has taken over; reconnecting workers find it. */
  closeAll(reason: string): void {
    for (const worker of [...this.#workers.values()]) {
      this.lost(worker, reason);
      worker.close(reason);
    }
  }

  stop(): void {
    this.#stopWatching();
  }

  #fitting(tags: Tags): ConnectedWorker[] {
    return [...this.#workers.values()].filter(({ facts }) => mayTake(facts, tags));
  }

  #reap(): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.silence < SILENCE_MS) continue;
      log("provisioners").warn("worker {name} has not been heard of and is given up", { name: worker.facts.name });
      this.lost(worker, "nothing was heard of it");
      worker.close("nothing was heard of you");
    }
  }

  #stopWatching(): void {
    this.#watch?.cancel();
    this.#watch = undefined;
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
