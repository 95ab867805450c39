// Shares job queues between nodes. Workers connect to the first node, so other nodes submit jobs that need a worker to it, with their ID
// and owner; the first node runs them and reports to the owner on any node. There is no completion message: nodes ask the first node which
// of their jobs it still holds, and requeue the others as after a restart (rules CP-60 to CP-63).
import type { Clock, Timer } from "#base/clock.ts";
import { NotStartedError } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { pause } from "#base/retry.ts";
import { FIRST_SHARD, listOtherNodes, type OtherNode, type Shards } from "#base/shards.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import { canRun, isForBuiltIn } from "#src/provisioners/external/tags.ts";
import type { JobQueue } from "./job-queue.ts";
import type {
  JobOwner,
  NamedJob,
  PresentWorker,
  QueuePosition,
  QueueView,
  RemoteQueues,
  Tags,
} from "./remote-queues.ts";

/** How often a node asks the first node which jobs it holds, and other nodes for their queues. */
const POLL_INTERVAL_MS = 500;
/** Minimum pause between two reads of a queue, which may change constantly. */
const MIN_READ_INTERVAL_MS = 50;
/** How long a node waits for a change of its queue before it answers. */
const VIEW_TIMEOUT_MS = 2_000;
/** Maximum IDs in one question. */
const MAX_IDS = 2_000;

/** Questions between nodes about jobs: plain data. */
export type RemoteJobRequest =
  | { readonly ask: "submit"; readonly job: NamedJob }
  /** Which of these jobs does the first node hold? Cancellations are repeated each time. */
  | { readonly ask: "held"; readonly ids: readonly string[]; readonly canceled: readonly Cancellation[] }
  /** Waits until the queue differs from the known version, and returns it. */
  | { readonly ask: "view"; readonly known: string };
type Cancellation = { readonly id: string; readonly reason: string };

export type RemoteJobsDeps = {
  readonly shards: Shards;
  readonly clock: Clock;
  readonly queue: () => JobQueue;
  /** Asks another node, which answers with `answer`. */
  ask(node: OtherNode, question: RemoteJobRequest): Promise<unknown>;
  /** Adds a job from another node to the local queue. */
  submit(job: NamedJob): void;
  /** Notifies the job's owner, if it is on this node, that the job has no worker. */
  requeue(owner: JobOwner, job_id: string): Promise<void>;
};

type SubmittedJob = { readonly of: JobOwner; readonly part: number | undefined; canceled?: string };

export class RemoteJobs implements RemoteQueues {
  readonly #deps: RemoteJobsDeps;
  readonly #submitted = new Map<string, SubmittedJob>();
  readonly #views = new Map<string, QueueView>();
  /** Nodes with an unanswered request. */
  readonly #pendingNodes = new Set<string>();
  readonly #listeners: ((workers: boolean) => void)[] = [];
  readonly #boot = uuid();
  #version = 0;
  #changed = Promise.withResolvers<void>();
  #workers: readonly PresentWorker[] = [];
  #isPolling = false;
  #timer: Timer | undefined;
  readonly #stopped = new AbortController();

  constructor(deps: RemoteJobsDeps) {
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
    this.#timer = this.#deps.clock.every(POLL_INTERVAL_MS, () => this.#tick());
    this.#tick();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#stopped.abort();
  }

  accepts(tags: Tags): boolean {
    return !isForBuiltIn(tags) && !this.#deps.shards.isFirst;
  }

  submit(job: NamedJob): void {
    this.follow(job);
    const first = this.#findFirstNode();
    // Lost submissions are detected by polling.
    if (first) this.#deps.ask(first, { ask: "submit", job }).catch(() => {});
  }

  follow({ id, part, of }: Pick<NamedJob, "id" | "part" | "of">): void {
    // Stores a new object each time, so that the answer to an older question is not applied to it.
    if (of) this.#submitted.set(id, { of, part });
  }

  cancel(id: string, reason: string): void {
    const job = this.#submitted.get(id);
    if (!job) return;
    job.canceled = reason;
    void this.#requeueLost([[id, job]]);
  }

  has(id: string): boolean {
    return this.#submitted.has(id);
  }

  workersFor(tags: Tags): readonly string[] {
    return this.#workers.filter((worker) => canRun(worker, tags)).map(({ id }) => id);
  }

  position(id: string): QueuePosition | undefined {
    for (const { waiting } of this.#views.values())
      for (const { ids, size } of waiting) {
        const index = ids.indexOf(id);
        if (index >= 0) return { queue_position: index + 1, queue_size: size };
      }
    return undefined;
  }

  onChange(listener: (workers: boolean) => void): void {
    this.#listeners.push(listener);
  }

  release(isLeaving: IsLeaving): void {
    for (const [id, { part }] of this.#submitted) if (part !== undefined && isLeaving(part)) this.#submitted.delete(id);
  }

  /** Answers another node. Throws NotStartedError if the question is for the first node and this node is not. */
  async answer(question: RemoteJobRequest): Promise<unknown> {
    const queue = this.#deps.queue();
    if (question.ask !== "view" && !this.#deps.shards.isFirst) throw new NotStartedError("The node has no workers.");
    switch (question.ask) {
      case "submit":
        this.#deps.submit(question.job);
        return undefined;
      case "held":
        for (const { id, reason } of question.canceled) queue.cancel(id, reason);
        return question.ids.filter((id) => queue.hasLocally(id));
      case "view":
        return this.#view(question.known);
    }
  }

  async #view(known: string): Promise<QueueView | null> {
    const { clock, queue } = this.#deps;
    const version = () => `${this.#boot} ${this.#version}`;
    if (known === version()) {
      const waitEnd = new AbortController();
      const timeout = pause(clock, VIEW_TIMEOUT_MS, AbortSignal.any([this.#stopped.signal, waitEnd.signal]));
      await Promise.race([this.#changed.promise, timeout]);
      waitEnd.abort();
    }
    return known === version() ? null : { ...queue().view, version: version() };
  }

  #tick(): void {
    if (!this.#isPolling && this.#submitted.size > 0) {
      this.#isPolling = true;
      const requeueing = this.#requeueLost([...this.#submitted].slice(0, MAX_IDS));
      void requeueing.finally(() => {
        this.#isPolling = false;
      });
    }
    const others = new Map(listOtherNodes(this.#deps.shards).map((node) => [node.id, node]));
    for (const id of this.#views.keys()) if (!others.has(id)) this.#applyView(id, undefined);
    for (const node of others.values()) if (!this.#pendingNodes.has(node.id)) void this.#read(node);
  }

  /** Requeues jobs that are not held. Never rejects. */
  async #requeueLost(jobs: readonly (readonly [string, SubmittedJob])[]): Promise<void> {
    try {
      const held = new Set(await this.#loadHeld(jobs));
      for (const [id, job] of jobs) {
        if (this.#submitted.get(id) !== job) continue;
        this.#submitted.delete(id);
        // Moves to the end, behind jobs that were not asked about.
        if (held.has(id)) this.#submitted.set(id, job);
        else await this.#deps.requeue(job.of, id);
      }
    } catch {
      // The next tick asks again.
    }
  }

  async #loadHeld(jobs: readonly (readonly [string, SubmittedJob])[]): Promise<readonly string[]> {
    const { queue, shards, ask } = this.#deps;
    const ids = jobs.map(([id]) => id);
    if (shards.isFirst) return ids.filter((id) => queue().hasLocally(id));
    const first = this.#findFirstNode();
    // Without a first node, this is unknown, so all jobs are considered held.
    if (!first) return ids;
    const canceled = jobs.flatMap(([id, { canceled: reason }]) => (reason === undefined ? [] : [{ id, reason }]));
    return (await ask(first, { ask: "held", ids, canceled })) as string[];
  }

  /** Polls the node until a request fails. The next tick starts again. */
  async #read(node: OtherNode): Promise<void> {
    this.#pendingNodes.add(node.id);
    try {
      while (!this.#stopped.signal.aborted) {
        const known = this.#views.get(node.id)?.version ?? "";
        const view = (await this.#deps.ask(node, { ask: "view", known })) as QueueView | null;
        if (!listOtherNodes(this.#deps.shards).some(({ id }) => id === node.id)) return;
        if (view) this.#applyView(node.id, view);
        await pause(this.#deps.clock, MIN_READ_INTERVAL_MS, this.#stopped.signal);
      }
    } catch {
      // The last known queue of the node is kept until the node is removed from the cluster.
    } finally {
      this.#pendingNodes.delete(node.id);
    }
  }

  #applyView(id: string, view: QueueView | undefined): void {
    if (view) this.#views.set(id, view);
    else this.#views.delete(id);
    const workers = this.#views.get(this.#findFirstNode()?.id ?? "")?.workers;
    const haveWorkersChanged = workers !== undefined && JSON.stringify(workers) !== JSON.stringify(this.#workers);
    if (workers) this.#workers = workers;
    for (const listener of this.#listeners) listener(haveWorkersChanged);
  }

  #findFirstNode(): OtherNode | undefined {
    return this.#deps.shards.nodeOf(FIRST_SHARD);
  }
}
