// The queues of the other nodes, from one of them. Workers are connected to the first node, so a job that needs one is told to it, by its id and
// whose it is; it does the work, and reports to the job's owner wherever that is. Nobody is told that a job is over: it is asked which of
// those it was given it still has, and the owner of any other hears that nobody works on it, as after a start (rules CP-60 to CP-63).
import type { Clock, Timer } from "#base/clock.ts";
import { NotBegun } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { FIRST_PART, type OtherNode, otherNodes, type Parts } from "#base/parts.ts";
import { pause } from "#base/retry.ts";
import { mayTake } from "#src/provisioners/external/tags.ts";
import { isForBuiltIn, type JobQueue } from "./job-queue.ts";
import type { JobOwner, NamedJob, OtherQueues, PlaceInQueue, PresentWorker, QueueView, Tags } from "./other-queues.ts";

/** How often the first node is asked what it has, and other nodes what waits there. */
const LOOK_MS = 500;
/** What waits may move all the time. */
const AGAIN_MS = 50;
/** A queue in which nothing changes is not told again for so long. */
const STILL_MS = 2_000;
/** Ids in one question. */
const MAX_ASKED = 2_000;

/** What nodes say to each other of jobs: plain data. */
export type FarQuestion =
  | { readonly ask: "submit"; readonly job: NamedJob }
  /** Which of these the first node has. Those that are to be cancelled are told each time. */
  | { readonly ask: "held"; readonly ids: readonly string[]; readonly canceled: readonly Canceled[] }
  /** What waits, once it is not what is known. */
  | { readonly ask: "view"; readonly known: string };
type Canceled = { readonly id: string; readonly reason: string };

export type FarJobsDeps = {
  readonly parts: Parts;
  readonly clock: Clock;
  readonly queue: () => JobQueue;
  /** Asks another node, which answers with `answer`. */
  ask(node: OtherNode, question: FarQuestion): Promise<unknown>;
  /** Puts a job that another node has told of into the queue here. */
  submit(job: NamedJob): void;
  /** Tells the owner, if it is here, that nobody works on its job. */
  requeue(of: JobOwner, job_id: string): Promise<void>;
};

type Given = { readonly of: JobOwner; readonly part: number | undefined; canceled?: string };

export class FarJobs implements OtherQueues {
  readonly #deps: FarJobsDeps;
  readonly #given = new Map<string, Given>();
  readonly #views = new Map<string, QueueView>();
  /** Nodes whose answer is on its way. */
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

  /** Begins to ask. */
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
    // What does not arrive is found out by asking.
    if (first) this.#deps.ask(first, { ask: "submit", job }).catch(() => {});
  }

  follow({ id, part, of }: Pick<NamedJob, "id" | "part" | "of">): void {
    // Another one each time, so that no answer to an older question is taken for one about it.
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

  /** What another node is answered. Throws NotBegun where this is not the first node and the question is for that. */
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

  /** The owners of those that nobody has hear of it. Never rejects. */
  async #look(given: readonly (readonly [string, Given])[]): Promise<void> {
    try {
      const held = new Set(await this.#held(given));
      for (const [id, one] of given) {
        if (this.#given.get(id) !== one) continue;
        this.#given.delete(id);
        // Behind those that were not asked for.
        if (held.has(id)) this.#given.set(id, one);
        else await this.#deps.requeue(one.of, id);
      }
    } catch {
      // Asked again.
    }
  }

  async #held(given: readonly (readonly [string, Given])[]): Promise<readonly string[]> {
    const { queue, parts, ask } = this.#deps;
    const ids = given.map(([id]) => id);
    if (parts.isFirst) return ids.filter((id) => queue().holdsHere(id));
    const first = this.#first();
    // While nobody is the first node nobody can say.
    if (!first) return ids;
    const canceled = given.flatMap(([id, { canceled: reason }]) => (reason === undefined ? [] : [{ id, reason }]));
    return (await ask(first, { ask: "held", ids, canceled })) as string[];
  }

  /** Until it cannot be asked; then the next tick begins again. */
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
      // What is known of it is shown until it no longer exists.
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
