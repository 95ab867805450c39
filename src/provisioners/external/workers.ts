// Tracks all connected workers: which of them may take a job, which have free slots, and which are silent. The job queue reserves a slot
// here before it hands out a job (rules PV-8 to PV-11).
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { ConnectedWorker, type WorkerFacts, type WorkerLink } from "./connected-worker.ts";
import { HEARTBEAT_INTERVAL_MS, SILENCE_TIMEOUT_MS } from "./protocol.ts";
import { canRun, type Tags, type WorkerScope } from "./tags.ts";

export class Workers {
  readonly #clock: Clock;
  /** Connected workers by ID, the least recently used first. */
  readonly #workers = new Map<string, ConnectedWorker>();
  /** Workers with a reserved slot, by job. */
  readonly #holders = new Map<string, ConnectedWorker>();
  readonly #listeners: (() => void)[] = [];
  #silenceTimer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Registers a listener for workers that connect, disconnect or get a free slot. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Adds an authenticated worker. Removes an earlier connection of the worker, which must be broken. */
  connect(facts: WorkerFacts, link: WorkerLink): ConnectedWorker {
    const existing = this.#workers.get(facts.id);
    const worker = new ConnectedWorker(facts, link, this.#clock);
    if (existing) {
      this.removeWorker(existing, "another connection with its name has taken over");
      existing.close("another worker of this name has connected");
    }
    this.#workers.set(facts.id, worker);
    this.#silenceTimer ??= this.#clock.every(HEARTBEAT_INTERVAL_MS, () => this.#removeSilent());
    this.notifyChanged();
    return worker;
  }

  /** Removes a disconnected worker and fails its jobs. Does nothing the second time. */
  removeWorker(worker: ConnectedWorker, reason: string): void {
    if (this.#workers.get(worker.facts.id) !== worker) return;
    this.#workers.delete(worker.facts.id);
    if (this.#workers.size === 0) this.#stopWatching();
    worker.failJobs(reason);
    this.notifyChanged();
  }

  /** Returns the IDs of the connected workers that could take a job with these tags. */
  workersFor(tags: Tags): readonly string[] {
    return this.#findMatching(tags).map(({ facts }) => facts.id);
  }

  /** True if any slot is free. */
  get hasFree(): boolean {
    return [...this.#workers.values()].some(({ freeSlots }) => freeSlots > 0);
  }

  /** Reserves a slot of the matching worker with the most free slots. Returns undefined if no matching worker has a free slot. */
  reserveSlot(
    job_id: string,
    tags: Tags,
  ): { readonly id: string; readonly name: string; readonly places: Tags } | undefined {
    let freest: ConnectedWorker | undefined;
    for (const worker of this.#findMatching(tags)) if (worker.freeSlots > (freest?.freeSlots ?? 0)) freest = worker;
    if (!freest) return undefined;
    freest.hold(job_id);
    this.#holders.set(job_id, freest);
    const { id, name, places } = freest.facts;
    // Moves the worker to the end, so that workers with equally many free slots take turns.
    this.#workers.delete(id);
    this.#workers.set(id, freest);
    return { id, name, places };
  }

  /** Returns the worker that has a slot reserved for this job. */
  findHolder(job_id: string): ConnectedWorker | undefined {
    return this.#holders.get(job_id);
  }

  /** Releases the slot of a job that has ended. */
  release(job_id: string): void {
    const holder = this.#holders.get(job_id);
    this.#holders.delete(job_id);
    if (holder?.release(job_id)) this.notifyChanged();
  }

  /** The connected workers, with the properties that decide which jobs they may take. */
  get present(): readonly (WorkerScope & { readonly id: string })[] {
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

  /** Returns the connected workers with their number of jobs. */
  listRunning(): { readonly name: string; readonly running: number }[] {
    return [...this.#workers.values()].map(({ facts, jobs }) => ({ name: facts.name, running: jobs.length }));
  }

  find(id: string): ConnectedWorker | undefined {
    return this.#workers.get(id);
  }

  /** Closes every connection that was authenticated with this key. */
  closeKey(key_id: string): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.facts.key_id !== key_id) continue;
      this.removeWorker(worker, "its key was removed");
      worker.close("the provisioner key was removed");
    }
  }

  /** Closes all connections because another node has taken over. The workers reconnect to that node. */
  closeAll(reason: string): void {
    for (const worker of [...this.#workers.values()]) {
      this.removeWorker(worker, reason);
      worker.close(reason);
    }
  }

  stop(): void {
    this.#stopWatching();
  }

  #findMatching(tags: Tags): ConnectedWorker[] {
    return [...this.#workers.values()].filter(({ facts }) => canRun(facts, tags));
  }

  #removeSilent(): void {
    for (const worker of [...this.#workers.values()]) {
      if (worker.silence_ms < SILENCE_TIMEOUT_MS) continue;
      log("provisioners").warn("worker {name} is silent and is considered lost", { name: worker.facts.name });
      this.removeWorker(worker, "nothing was heard of it");
      worker.close("nothing was heard of you");
    }
  }

  #stopWatching(): void {
    this.#silenceTimer?.cancel();
    this.#silenceTimer = undefined;
  }

  /** Calls the listeners. Must also be called after a message that may have changed the number of free slots. */
  notifyChanged(): void {
    for (const listener of this.#listeners) listener();
  }
}
