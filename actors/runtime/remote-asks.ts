// Sends messages to actors that may be on other nodes, on the node that has the actor now. While the actor's shard moves, messages wait,
// and a message that did not reach the actor is sent again. Messages of one sender to one actor keep their order.
import type { Clock } from "#base/clock.ts";
import { AppError, NotStartedError } from "#base/errors.ts";
import { runWhileWaiting } from "#base/network/current-request.ts";
import { pause } from "#base/retry.ts";
import type { OtherNode } from "#base/shards.ts";

/** Where an actor is now; "moving": no node has its shard for a moment. */
export type ActorLocation = "here" | "moving" | OtherNode;

/** Locates actors on other nodes and sends them messages. */
export interface RemoteActors {
  /** Returns a promise only if the location must be looked up. Unknown actors are here. */
  locate(id: string): ActorLocation | Promise<ActorLocation>;
  /** Rejects with `NotStartedError` when the message did not reach the actor and may be sent again. Sends before it returns. */
  ask(node: OtherNode, id: string, message: string, args: unknown): Promise<unknown>;
  /** Announces the shard of an entity about to be created. */
  expect(id: string, shard: number): void;
}

/** How long a message waits for an actor whose shard moves, and how often the location is looked up. */
const MOVE_TIMEOUT_MS = 15_000;
const RETRY_INTERVAL_MS = 50;
/** Maximum messages of a directory that wait for a location. */
const MAX_WAITING = 4_096;

type LocalActors = {
  askHere(id: string, message: string, args: unknown): Promise<unknown>;
  readonly isStopping: boolean;
};

export class RemoteSender {
  readonly #remote: RemoteActors;
  readonly #clock: Clock;
  readonly #local: LocalActors;
  /** By ID: resolves when the last message waiting for the actor's location has been sent. Later messages queue behind it. */
  readonly #sending = new Map<string, Promise<void>>();
  #waiting = 0;

  constructor(remote: RemoteActors, clock: Clock, local: LocalActors) {
    this.#remote = remote;
    this.#clock = clock;
    this.#local = local;
  }

  ask(id: string, message: string, args: unknown): Promise<unknown> {
    const location = this.#sending.has(id) ? undefined : this.#remote.locate(id);
    if (location === "here") return this.#local.askHere(id, message, args);
    return this.#sendWithRetries(location, id, (node) => {
      if (node === "here") return this.#local.askHere(id, message, args);
      if (node === "moving") return Promise.reject(new NotStartedError("No node has this resource now. Please retry."));
      return this.#remote.ask(node, id, message, args);
    });
  }

  expect(id: string, shard: number): void {
    this.#remote.expect(id, shard);
  }

  /** Retries while the message does not reach the actor, for as long as a shard may take to move. */
  async #sendWithRetries(
    first: ActorLocation | Promise<ActorLocation> | undefined,
    id: string,
    send: (at: ActorLocation) => Promise<unknown>,
  ): Promise<unknown> {
    const deadline = this.#clock.monotonic() + MOVE_TIMEOUT_MS;
    for (let location = first; ; location = undefined) {
      try {
        if (typeof location === "object" && !(location instanceof Promise)) return await send(location);
        // The sender's shard may move at the same time, so its node must not wait for this message.
        const { reply } = await runWhileWaiting(() => this.#sendInOrder(location, id, deadline, send));
        return await reply;
      } catch (error) {
        if (!(error instanceof NotStartedError)) throw error;
        // The sender may be an actor that has already started work, so its own message must not be sent again.
        if (this.#local.isStopping || this.#clock.monotonic() >= deadline)
          throw new AppError("overloaded", error.message, { retry_after: 1 });
      }
      await pause(this.#clock, RETRY_INTERVAL_MS);
    }
  }

  /** Sends the message once the actor's location is known, after all earlier ones that waited for it. Does not wait for the reply. */
  async #sendInOrder(
    first: ActorLocation | Promise<ActorLocation> | undefined,
    id: string,
    deadline: number,
    send: (at: ActorLocation) => Promise<unknown>,
  ): Promise<{ reply: Promise<unknown> }> {
    if (this.#waiting >= MAX_WAITING)
      throw new AppError("overloaded", "Too many requests are waiting for other nodes.");
    const before = this.#sending.get(id);
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    this.#sending.set(id, sent);
    this.#waiting += 1;
    try {
      await before;
      let location = await (first ?? this.#remote.locate(id));
      while (location === "moving" && !this.#local.isStopping && this.#clock.monotonic() < deadline) {
        await pause(this.#clock, RETRY_INTERVAL_MS);
        location = await this.#remote.locate(id);
      }
      const reply = send(location);
      // Avoids an unhandled rejection. The error reaches the caller that awaits the reply.
      reply.catch(() => {});
      return { reply };
    } finally {
      this.#waiting -= 1;
      resolve();
      if (this.#sending.get(id) === sent) this.#sending.delete(id);
    }
  }
}
