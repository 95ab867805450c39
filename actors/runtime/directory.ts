// Finds the one live actor of an ID: starts it on its first message and drops it when idle (rules AC-4, AC-5). Callers hold IDs instead
// of actors, because an actor that was dropped is replaced by another instance.
import type { Clock } from "#base/clock.ts";
import { AppError } from "#base/errors.ts";
import { getCurrentRequest } from "#base/network/current-request.ts";
import { toShard } from "#base/shards.ts";
import { isMoved } from "#db/engine/store.ts";
import type { IsLeaving } from "#db/own-rows.ts";
import type { Actor } from "./actor.ts";
import { type RemoteActors, RemoteSender } from "./remote-asks.ts";

/** An actor without messages for this long is dropped. */
export const IDLE_TIMEOUT_MS = 60_000;

/** The messages of an actor: its public methods with one plain JSON argument. */
export type Messages<A> = {
  [K in keyof A as A[K] extends (args: never) => Promise<unknown> ? K : never]: A[K] extends (
    args: infer Args,
  ) => Promise<infer Reply>
    ? { args: Args; reply: Reply }
    : never;
};

/** Sends messages to actors: the part of a directory that other code depends on. */
export interface MessageSender<M> {
  /** Sends a message and waits for its answer. Rejects with 503 while the server stops or the mailbox is full. */
  ask<K extends keyof Messages<M>>(
    id: string,
    message: K,
    args: Messages<M>[K]["args"],
  ): Promise<Messages<M>[K]["reply"]>;
}

/** Maximum actors examined per eviction. Actors that must stay are not examined each time. */
const MAX_EXAMINED = 4;

/** `placed`: when the entry was created or last examined. */
type Entry<A> = { actor: A; used: number; placed: number };

export type DirectoryOptions = {
  /** Copies messages and replies in tests, to prove that they are plain data. */
  copy?: (<T>(args: T) => T) | undefined;
  /** Reaches actors that are not in this process; undefined if all are. */
  remote?: RemoteActors | undefined;
  /** Maximum actors: above this number, each new actor evicts an idle one that was not used recently. Default: no eviction. */
  most?: number | undefined;
};

/** The kinds of actors, by the kind of their ID; a dry run is a job. */
export type ActorKind = "agent" | "chat" | "job" | "template_version" | "workspace";

/** Opens the directory of a kind of actors on all nodes. `create` makes those of this process. */
export type OpenDirectory = <A extends Actor<unknown>>(
  kind: ActorKind,
  create: (id: string) => A,
  options?: Pick<DirectoryOptions, "most">,
) => Directory<A>;

export class Directory<A extends Actor<unknown>> {
  readonly #entries = new Map<string, Entry<A>>();
  readonly #createActor: (id: string) => A;
  readonly #clock: Clock;
  readonly #copy: (<T>(message: T) => T) | undefined;
  readonly #remote: RemoteSender | undefined;
  readonly #maxActors: number;
  #stopping = false;

  constructor(createActor: (id: string) => A, clock: Clock, options: DirectoryOptions = {}) {
    this.#createActor = createActor;
    this.#clock = clock;
    this.#copy = options.copy;
    const { remote, most = Number.POSITIVE_INFINITY } = options;
    this.#maxActors = most;
    this.#remote = remote && new RemoteSender(remote, clock, this);
  }

  /**
   * Sends a message to the node that has the actor, and waits for its answer. Messages of one sender to one actor keep their order. Rejects
   * with 503 while the server stops, the mailbox is full, or no node has the actor.
   */
  ask<K extends keyof Messages<A> & keyof A & string>(
    id: string,
    message: K,
    args: Messages<A>[K]["args"],
  ): Promise<Messages<A>[K]["reply"]> {
    if (!this.#remote) return this.askHere(id, message, args);
    const reply = this.#remote.ask(id, message, args) as Promise<Messages<A>[K]["reply"]>;
    return getCurrentRequest()?.trackChange(reply, isMoved) ?? reply;
  }

  /**
   * Announces the shard of an entity that is about to be created and cannot be looked up yet: the `part` of its row, or the ID from which
   * the shard follows (`toShard`). Does nothing on a single node.
   */
  expect(id: string, shardOrOwner: number | string): void {
    this.#remote?.expect(id, typeof shardOrOwner === "number" ? shardOrOwner : toShard(shardOrOwner));
  }

  /** Sends a message to the actor in this process. The caller must know that it is here. */
  askHere<K extends keyof Messages<A> & keyof A>(
    id: string,
    message: K,
    args: Messages<A>[K]["args"],
  ): Promise<Messages<A>[K]["reply"]> {
    if (this.#stopping) return Promise.reject(new AppError("overloaded", "The server is stopping."));
    let entry = this.#entries.get(id);
    const now = this.#clock.monotonic();
    if (!entry) {
      if (this.#entries.size >= this.#maxActors) this.#makeRoom(now);
      entry = { actor: this.#createActor(id), used: now, placed: now };
      this.#entries.set(id, entry);
    }
    entry.used = now;
    const actor = entry.actor as Record<K, (args: unknown) => Promise<never>>;
    const copy = this.#copy;
    return copy ? actor[message](copy(args)).then(copy) : actor[message](args);
  }

  /** Whether the directory rejects new messages. */
  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Number of actors in memory. */
  get size(): number {
    return this.#entries.size;
  }

  /** Called by the scheduler: drops idle actors. An actor with waiting messages or running effects stays. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const [id, { actor, used }] of this.#entries) {
      if (actor.canDrop && now - used >= IDLE_TIMEOUT_MS) this.#drop(id, actor);
    }
  }

  /** Rejects new messages. Resolves when all waiting ones have been answered. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#entries.values()].map(({ actor }) => actor.whenDrained()));
    for (const [id, { actor }] of this.#entries) this.#drop(id, actor);
  }

  /**
   * Releases the actors of leaving rows, for which no messages arrive anymore. Resolves when all waiting messages have been answered.
   * Everything else that keeps an actor in use must be ended first.
   */
  async release(isLeaving: IsLeaving): Promise<void> {
    await Promise.all([...this.#entries].map(([id, { actor }]) => this.#release(id, actor, isLeaving)));
  }

  /** Drops the actor if its part is leaving. The part may be known only after the first message was handled. */
  async #release(id: string, actor: A, isLeaving: IsLeaving): Promise<void> {
    const isStaying = (): boolean => actor.currentPart !== undefined && !isLeaving(actor.currentPart);
    do {
      if (isStaying()) return;
      await actor.whenDrained();
    } while (!actor.isIdle);
    if (isStaying()) return;
    if (this.#entries.get(id)?.actor === actor) this.#drop(id, actor);
  }

  /** Evicts an idle actor. Actors at the front that cannot be evicted, or were used since they were last examined, move to the end. */
  #makeRoom(now: number): void {
    let examinedCount = 0;
    for (const [id, entry] of this.#entries) {
      const { actor, used, placed } = entry;
      if (actor.canEvict && used <= placed) {
        this.#drop(id, actor);
        return;
      }
      entry.placed = now;
      this.#entries.delete(id);
      this.#entries.set(id, entry);
      if (++examinedCount === MAX_EXAMINED) return;
    }
  }

  #drop(id: string, actor: A): void {
    actor.onDropped();
    this.#entries.delete(id);
  }
}
