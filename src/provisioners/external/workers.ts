// All workers that are connected now: who may take a job, who is free, who has fallen silent. The queue of jobs reserves a slot here
// before a job leaves it (rules PV-8 to PV-11).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { ConnectedWorker, type WorkerFacts, type WorkerLink } from "./connected-worker.ts";
import { ALIVE_MS, SILENCE_MS } from "./protocol.ts";
import { mayTake, type Tags, type WorkerPlace } from "./tags.ts";

export class Workers {
  readonly #clock: Clock;
  /** By id, in the order in which they were last given a job. */
  readonly #workers = new Map<string, ConnectedWorker>();
  readonly #holders = new Map<string, ConnectedWorker>();
  readonly #listeners: (() => void)[] = [];
  #watch: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Called whenever a worker came, went or has a free slot. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** A worker has signed in. One of the same id that is still here is a connection that broke: it goes. */
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

  /** Its connection has ended: its jobs are nobody's now. Does nothing the second time. */
  lost(worker: ConnectedWorker, reason: string): void {
    if (this.#workers.get(worker.facts.id) !== worker) return;
    this.#workers.delete(worker.facts.id);
    if (this.#workers.size === 0) this.#stopWatching();
    worker.lose(reason);
    this.#changed();
  }

  /** What a worker said may have changed how many slots it has. */
  heard(): void {
    this.#changed();
  }

  /** Ids of the connected workers that could take a job with these tags. */
  workersFor(tags: Tags): readonly string[] {
    return this.#fitting(tags).map(({ facts }) => facts.id);
  }

  /** True while some slot is free. */
  get hasFree(): boolean {
    return [...this.#workers.values()].some(({ free }) => free > 0);
  }

  /** Keeps a slot for the job at the fitting worker with the most free ones; undefined when none exists. */
  take(job_id: string, tags: Tags): { readonly id: string; readonly name: string; readonly places: Tags } | undefined {
    let best: ConnectedWorker | undefined;
    for (const worker of this.#fitting(tags)) if (worker.free > (best?.free ?? 0)) best = worker;
    if (!best) return undefined;
    best.hold(job_id);
    this.#holders.set(job_id, best);
    // Among equals the one that has waited longest is next.
    this.#workers.delete(best.facts.id);
    this.#workers.set(best.facts.id, best);
    return { id: best.facts.id, name: best.facts.name, places: best.facts.places };
  }

  /** The worker that keeps a slot for this job. */
  holderOf(job_id: string): ConnectedWorker | undefined {
    return this.#holders.get(job_id);
  }

  /** The job has ended, here or anywhere. */
  release(job_id: string): void {
    const holder = this.#holders.get(job_id);
    this.#holders.delete(job_id);
    if (holder?.release(job_id)) this.#changed();
  }

  /** Everyone who is connected now, as far as it matters for which jobs they may take. */
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

  /** Everyone who is connected now, and how many jobs each has. */
  shown(): { readonly name: string; readonly running: number }[] {
    return [...this.#workers.values()].map(({ facts, jobs }) => ({ name: facts.name, running: jobs.length }));
  }

  /** What is connected under this id now. */
  find(id: string): ConnectedWorker | undefined {
    return this.#workers.get(id);
  }

  /** Ends every connection that was made with this key. */
  closeKey(key_id: string): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.facts.key_id !== key_id) continue;
      this.lost(worker, "its key was removed");
      worker.close("the provisioner key was removed");
    }
  }

  /** They are another node's now: anyone who connects again finds it. */
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
