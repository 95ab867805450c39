// Shares job queues between nodes. Workers connect to the first node, so other nodes submit jobs that need a worker to it, with their ID
// and owner; the first node runs them and reports to the owner on any node. There is no completion message: nodes ask the first node which
// of their jobs it still holds, and requeue the others as after a restart (rules CP-60 to CP-63).
import type { Clock, Timer } from "#base/clock.ts";
import { NotBegun } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { FIRST_PART, type OtherNode, otherNodes, type Parts } from "#base/parts.ts";
import { pause } from "#base/retry.ts";
import { mayTake } from "#src/provisioners/external/tags.ts";
import { isForBuiltIn, type JobQueue } from "./job-queue.ts";
import type { JobOwner, NamedJob, OtherQueues, PlaceInQueue, PresentWorker, QueueView, Tags } from "./other-queues.ts";

/** How often a node asks the first node for held jobs, and other nodes for their queues. */
const LOOK_MS = 500;
/** Minimum pause between two reads of a queue, which may change constantly. */
const AGAIN_MS = 50;
/** How long a queue without changes delays its answer. */
const STILL_MS = 2_000;
/** Maximum IDs in one question. */
const MAX_ASKED = 2_000;

/** Questions between nodes about jobs: plain data. */
export type FarQuestion =
  | { readonly ask: "submit"; readonly job: NamedJob }
  /** Which of these jobs does the first node hold? Cancellations are repeated each time. */
  | { readonly ask: "held"; readonly ids: readonly string[]; readonly canceled: readonly Canceled[] }
  /** Waits until the queue differs from the known version, and returns it. */
  | { readonly ask: "view"; readonly known: string };
type Canceled = { readonly id: string; readonly reason: string };

export type FarJobsDeps = {
  readonly parts: Parts;
  readonly clock: Clock;
  readonly queue: () => JobQueue;
  /** Asks another node, which answers with `answer`. */
  ask(node: OtherNode, question: FarQuestion): Promise<unknown>;
  /** Adds a job from another node to the local queue. */
  submit(job: NamedJob): void;
  /** Tells the job's owner, if it is on this node, that the job has no worker. */
  requeue(of: JobOwner, job_id: string): Promise<void>;
};

type Given = { readonly of: JobOwner; readonly part: number | undefined; canceled?: string };

export class FarJobs implements OtherQueues {
  readonly #deps: FarJobsDeps;
  readonly #given = new Map<string, Given>();
  readonly #views = new Map<string, QueueView>();
  /** Nodes with an unanswered request. */
  readonly #asked = new Set<string>();
  readonly #listeners: ((workers: boolean) => void)[] = [];
  readonly #boot = uuid();
  #version = 0;
  #changed = Promise.withResolvers<void>();
  #workers: readonly PresentWorker[] = [];
  #looks = false;
  #timer: Timer | undefined;
  readonly #stopped = new AbortController();

  constructor(deps: FarJobsDeps) {
    this.#deps = deps;
  }

  /** Starts polling. */
  start(): void {
    this.#deps.queue().onChange((isOwn) => {
      if (!isOwn) return;
      this.#version += 1;
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
    });
    this.#timer = this.#deps.clock.every(LOOK_MS, () => this.#tick());
    this.#tick();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stopped.abort();
  }

  takes(tags: Tags): boolean {
    return !isForBuiltIn(tags) && !this.#deps.parts.isFirst;
  }

  submit(job: NamedJob): void {
    this.follow(job);
    const first = this.#first();
    // Lost submissions are detected by polling.
    if (first) this.#deps.ask(first, { ask: "submit", job }).catch(() => {});
  }

  follow({ id, part, of }: Pick<NamedJob, "id" | "part" | "of">): void {
    // Stores a new object each time, so that the answer to an older question is not applied to it.
    if (of) this.#given.set(id, { of, part });
  }

  cancel(id: string, reason: string): void {
    const given = this.#given.get(id);
    if (!given) return;
    given.canceled = reason;
    void this.#look([[id, given]]);
  }

  holds(id: string): boolean {
    return this.#given.has(id);
  }

  workersFor(tags: Tags): readonly string[] {
    return this.#workers.filter((worker) => mayTake(worker, tags)).map(({ id }) => id);
  }

  position(id: string): PlaceInQueue | undefined {
    for (const { waiting } of this.#views.values())
      for (const { ids, size } of waiting) {
        const at = ids.indexOf(id);
        if (at >= 0) return { queue_position: at + 1, queue_size: size };
      }
    return undefined;
  }

  onChange(listener: (workers: boolean) => void): void {
    this.#listeners.push(listener);
  }

  leave(isLeaving: (part: number) => boolean): void {
    for (const [id, { part }] of this.#given) if (part !== undefined && isLeaving(part)) this.#given.delete(id);
  }

  /** Answers another node. Throws NotBegun if the question is for the first node and this node is not. */
  async answer(question: FarQuestion): Promise<unknown> {
    const queue = this.#deps.queue();
    if (question.ask !== "view" && !this.#deps.parts.isFirst) throw new NotBegun("The node has no workers.");
    switch (question.ask) {
      case "submit":
        this.#deps.submit(question.job);
        return undefined;
      case "held":
        for (const { id, reason } of question.canceled) queue.cancel(id, reason);
        return question.ids.filter((id) => queue.holdsHere(id));
      case "view":
        return this.#view(question.known);
    }
  }

  async #view(known: string): Promise<QueueView | null> {
    const { clock, queue } = this.#deps;
    const version = () => `${this.#boot} ${this.#version}`;
    if (known === version()) {
      const over = new AbortController();
      const still = pause(clock, STILL_MS, AbortSignal.any([this.#stopped.signal, over.signal]));
      await Promise.race([this.#changed.promise, still]);
      over.abort();
    }
    return known === version() ? null : { ...queue().view, version: version() };
  }

  #tick(): void {
    if (!this.#looks && this.#given.size > 0) {
      this.#looks = true;
      const look = this.#look([...this.#given].slice(0, MAX_ASKED));
      void look.finally(() => {
        this.#looks = false;
      });
    }
    const others = new Map(otherNodes(this.#deps.parts).map((node) => [node.id, node]));
    for (const id of this.#views.keys()) if (!others.has(id)) this.#seen(id, undefined);
    for (const node of others.values()) if (!this.#asked.has(node.id)) void this.#read(node);
  }

  /** Requeues jobs that are not held. Never rejects. */
  async #look(given: readonly (readonly [string, Given])[]): Promise<void> {
    try {
      const held = new Set(await this.#held(given));
      for (const [id, one] of given) {
        if (this.#given.get(id) !== one) continue;
        this.#given.delete(id);
        // Moves to the end, behind jobs that were not asked about.
        if (held.has(id)) this.#given.set(id, one);
        else await this.#deps.requeue(one.of, id);
      }
    } catch {
      // The next tick asks again.
    }
  }

  async #held(given: readonly (readonly [string, Given])[]): Promise<readonly string[]> {
    const { queue, parts, ask } = this.#deps;
    const ids = given.map(([id]) => id);
    if (parts.isFirst) return ids.filter((id) => queue().holdsHere(id));
    const first = this.#first();
    // Unknown without a first node, so all jobs are considered held.
    if (!first) return ids;
    const canceled = given.flatMap(([id, { canceled: reason }]) => (reason === undefined ? [] : [{ id, reason }]));
    return (await ask(first, { ask: "held", ids, canceled })) as string[];
  }

  /** Polls the node until a request fails. The next tick starts again. */
  async #read(node: OtherNode): Promise<void> {
    this.#asked.add(node.id);
    try {
      while (!this.#stopped.signal.aborted) {
        const known = this.#views.get(node.id)?.version ?? "";
        const view = (await this.#deps.ask(node, { ask: "view", known })) as QueueView | null;
        if (!otherNodes(this.#deps.parts).some(({ id }) => id === node.id)) return;
        if (view) this.#seen(node.id, view);
        await pause(this.#deps.clock, AGAIN_MS, this.#stopped.signal);
      }
    } catch {
      // Keeps its last known queue until the node is removed from the cluster.
    } finally {
      this.#asked.delete(node.id);
    }
  }

  #seen(id: string, view: QueueView | undefined): void {
    if (view) this.#views.set(id, view);
    else this.#views.delete(id);
    const workers = this.#views.get(this.#first()?.id ?? "")?.workers;
    const isOther = workers !== undefined && JSON.stringify(workers) !== JSON.stringify(this.#workers);
    if (workers) this.#workers = workers;
    for (const listener of this.#listeners) listener(isOther);
  }

  #first(): OtherNode | undefined {
    return this.#deps.parts.nodeOf(FIRST_PART);
  }
}
