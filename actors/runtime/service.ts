// The services that the server runs for its features. `Services` starts them in the order of its list (src/context/context.ts), and stops
// them in reverse order.
import { FIRST_SHARD, type Shards } from "#base/shards.ts";
import type { Timer } from "#db/engine/timers.ts";
import { findOwnRows, type IsLeaving, type OwnRows } from "#db/own-rows.ts";
import { ResumeIncompleteError } from "./resume-work.ts";

/** A service has only the members that it needs. */
export interface Service {
  /** Set if only one of several nodes runs the service. Default: every node runs it for its own shards. */
  readonly runsOn?: "one node";
  /** Handles due timers, by the kind of actor that has set them. */
  readonly timers?: Readonly<Record<string, (timer: Timer) => Promise<unknown>>>;
  /** Continues the interrupted work on these rows, after a start or a takeover. */
  recover?(own: OwnRows): unknown;
  /** Starts periodic work. Called once, when the server listens. */
  start?(): unknown;
  /** Looks for due work, and does it in the background until `mayContinue` returns false. Called every ten seconds. */
  sweep?(mayContinue?: () => boolean): void;
  /** Resolves when no background work is running. */
  whenIdle?(): Promise<unknown>;
  /**
   * Ends the work on leaving rows, which another node continues. `kept`: the rows that stay. Resolves when no such work is running here.
   */
  release?(isLeaving: IsLeaving, kept: OwnRows): unknown;
  /** Ends all work. Resolves when everything is on disk. */
  stop?(): unknown;
}

/** Returns whether only one node runs the service. Such a service ends before the others when another node takes over. */
const isForOneNode = ({ runsOn }: Service): boolean => runsOn === "one node";

export class Services {
  readonly #all: readonly Service[];
  readonly #shards: Shards;
  readonly #timers: ReadonlyMap<string, (timer: Timer) => Promise<unknown>>;

  /** `all`: each service comes after the services that it depends on. */
  constructor(all: readonly Service[], shards: Shards) {
    this.#all = all;
    this.#shards = shards;
    this.#timers = new Map(all.flatMap(({ timers = {} }) => Object.entries(timers)));
  }

  /**
   * Continues the interrupted work on these rows. Work that cannot be continued yet does not block other work: a start proceeds without
   * it, and
   * a takeover throws `ResumeIncompleteError` at the end, so that it is retried.
   */
  async recover(own: OwnRows): Promise<void> {
    let later: ResumeIncompleteError | undefined;
    for (const one of this.#all) {
      if (isForOneNode(one) && !own.has("deployment")) continue;
      try {
        await one.recover?.(own);
      } catch (error) {
        if (!(error instanceof ResumeIncompleteError)) throw error;
        later = error;
      }
    }
    if (later && !own.areAll) throw later;
  }

  async start(): Promise<void> {
    for (const one of this.#all) await one.start?.();
  }

  /** Sends a due timer's message to its actor. */
  async deliver(timer: Timer): Promise<void> {
    await this.#timers.get(timer.actor)?.(timer);
  }

  sweep(): void {
    const isFirst = (): boolean => this.#shards.isFirst;
    for (const one of this.#all) {
      if (!isForOneNode(one)) one.sweep?.();
      else if (isFirst()) one.sweep?.(isFirst);
    }
  }

  async whenIdle(): Promise<void> {
    await Promise.all(this.#all.map((one) => one.whenIdle?.()));
  }

  /** Ends the work on leaving rows. Services that run on one node end first. */
  async release(isLeaving: IsLeaving): Promise<void> {
    const kept = findOwnRows(this.#shards);
    const release = (all: readonly Service[]) => Promise.all(all.map((one) => one.release?.(isLeaving, kept)));
    const all = this.#all.toReversed();
    if (isLeaving(FIRST_SHARD)) await release(all.filter(isForOneNode));
    await release(all.filter((one) => !isForOneNode(one)));
  }

  async stop(): Promise<void> {
    for (const one of this.#all.toReversed()) await one.stop?.();
  }
}
