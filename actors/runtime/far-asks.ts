// Messages to actors that may be on other nodes: each goes to whichever node has the actor now. While its part moves it waits, and what has
// begun nothing there is sent again; messages of one sender to one actor keep their order.
import type { Clock } from "#base/clock.ts";
import { AppError, NotBegun } from "#base/errors.ts";
import { waitingForOthers } from "#base/network/request-part.ts";
import type { OtherNode } from "#base/parts.ts";
import { pause } from "#base/retry.ts";

/** Where an actor is now: a part that moves is nobody's for a moment. */
export type ActorPlace = "here" | "nobody" | OtherNode;

/** Knows where actors are that may be on other nodes, and asks them there. */
export interface Elsewhere {
  /** A promise only where it has to be looked up. What is nowhere is here. */
  placeOf(id: string): ActorPlace | Promise<ActorPlace>;
  /** Rejects with `NotBegun` when the message has not reached the actor there, and may be sent again. Sent before it returns. */
  ask(node: OtherNode, id: string, message: string, args: unknown): Promise<unknown>;
  /** What has this id is about to be made, of this part. */
  expect(id: string, part: number): void;
}

/** How long a message waits for an actor whose part moves, and how often it is looked for. */
const MOVING_MS = 15_000;
const LOOK_MS = 50;
/** Messages that may wait so for all actors of a directory. */
const MAX_WAITING = 4_096;

type Here = {
  askHere(id: string, message: string, args: unknown): Promise<unknown>;
  readonly isStopping: boolean;
};

export class FarAsks {
  readonly #elsewhere: Elsewhere;
  readonly #clock: Clock;
  readonly #here: Here;
  /** By id: over when the last message that waits for its actor's place has been sent. Later ones go behind it. */
  readonly #sending = new Map<string, Promise<void>>();
  #waiting = 0;

  constructor(elsewhere: Elsewhere, clock: Clock, here: Here) {
    this.#elsewhere = elsewhere;
    this.#clock = clock;
    this.#here = here;
  }

  ask(id: string, message: string, args: unknown): Promise<unknown> {
    const place = this.#sending.has(id) ? undefined : this.#elsewhere.placeOf(id);
    if (place === "here") return this.#here.askHere(id, message, args);
    return this.#askUntilBegun(place, id, (at) => {
      if (at === "here") return this.#here.askHere(id, message, args);
      if (at === "nobody") return Promise.reject(new NotBegun("No node has this resource now. Please retry."));
      return this.#elsewhere.ask(at, id, message, args);
    });
  }

  expect(id: string, part: number): void {
    this.#elsewhere.expect(id, part);
  }

  /** Looks again while nothing has been begun, for as long as a part may move. */
  async #askUntilBegun(
    first: ActorPlace | Promise<ActorPlace> | undefined,
    id: string,
    send: (at: ActorPlace) => Promise<unknown>,
  ): Promise<unknown> {
    const until = this.#clock.monotonic() + MOVING_MS;
    for (let place = first; ; place = undefined) {
      try {
        if (typeof place === "object" && !(place instanceof Promise)) return await send(place);
        // A part that moves may move with that of anyone who asks, and waits for nobody who waits for it.
        const { reply } = await waitingForOthers(() => this.#inTurn(place, id, until, send));
        return await reply;
      } catch (error) {
        if (!(error instanceof NotBegun)) throw error;
        // Who asks on behalf of another actor has begun something by now: that one is not to be sent its message again.
        if (this.#here.isStopping || this.#clock.monotonic() >= until)
          throw new AppError("overloaded", error.message, { retry_after: 1 });
      }
      await pause(this.#clock, LOOK_MS);
    }
  }

  /** Sends once it is known where the actor is, and behind all that waited for that before. The reply is not waited for. */
  async #inTurn(
    first: ActorPlace | Promise<ActorPlace> | undefined,
    id: string,
    until: number,
    send: (at: ActorPlace) => Promise<unknown>,
  ): Promise<{ reply: Promise<unknown> }> {
    if (this.#waiting >= MAX_WAITING) throw new AppError("overloaded", "Too much waits for other nodes.");
    const before = this.#sending.get(id);
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    this.#sending.set(id, sent);
    this.#waiting += 1;
    try {
      await before;
      let place = await (first ?? this.#elsewhere.placeOf(id));
      while (place === "nobody" && !this.#here.isStopping && this.#clock.monotonic() < until) {
        await pause(this.#clock, LOOK_MS);
        place = await this.#elsewhere.placeOf(id);
      }
      const reply = send(place);
      // Its error is for anyone who waits for the reply, from the next turn on.
      reply.catch(() => {});
      return { reply };
    } finally {
      this.#waiting -= 1;
      resolve();
      if (this.#sending.get(id) === sent) this.#sending.delete(id);
    }
  }
}
