// What the server runs for its features: `Services` keeps all of it in one list (src/context/context.ts), forwards at the start and backwards
// at the end.
import { FIRST_SHARD, getOwnShards, type ShardNumbers, type Shards } from "#base/shards.ts";
import type { Timer } from "#db/engine/timers.ts";
import { ResumeIncompleteError } from "./resume-work.ts";

/** Something that the server runs. Each has only the members that it needs. */
export interface Service {
  /** Of several nodes, only one runs it. Default: every node, for its own shards. */
  readonly runsOn?: "one node";
  /** Handles due timers, by the kind of actor that has set them. */
  readonly timers?: Readonly<Record<string, (timer: Timer) => Promise<unknown>>>;
  /** Continues the interrupted work of these shards, after a start or a takeover; undefined: of all. */
  recover?(shards: ShardNumbers): unknown;
  /** Starts periodic work. Called once, when the server listens. */
  start?(): unknown;
  /** Looks for due work, and does it in the background until `mayContinue` returns false. Called every ten seconds. */
  sweep?(mayContinue?: () => boolean): void;
  /** Resolves when no background work is running. */
  whenIdle?(): Promise<unknown>;
  /** Ends the work of shards that another node continues. `left`: the shards that this node keeps. Resolves when none is running here. */
  releaseShards?(isLeaving: (shard: number) => boolean, left: ShardNumbers): unknown;
  /** Ends all work. Resolves when everything is on disk. */
  stop?(): unknown;
}

/** Only one node runs it, and it ends before other work when another node takes over. */
const isForOneNode = ({ runsOn }: Service): boolean => runsOn === "one node";

export class Services {
  readonly #all: readonly Service[];
  readonly #shards: Shards;
  readonly #timers: ReadonlyMap<string, (timer: Timer) => Promise<unknown>>;

  /** Services come after their dependencies. */
  constructor(all: readonly Service[], shards: Shards) {
    this.#all = all;
    this.#shards = shards;
    this.#timers = new Map(all.flatMap(({ timers = {} }) => Object.entries(timers)));
  }

  /**
   * Continues the interrupted work of these shards; undefined: of all. Work that cannot be continued yet does not block the rest: a start
   * proceeds without it, and for shards of another node throws `ResumeIncompleteError` at the end, so that it is retried.
   */
  async recover(shards: ShardNumbers): Promise<void> {
    let later: ResumeIncompleteError | undefined;
    for (const one of this.#all) {
      if (isForOneNode(one) && shards && !shards.includes(FIRST_SHARD)) continue;
      try {
        await one.recover?.(shards);
      } catch (error) {
        if (!(error instanceof ResumeIncompleteError)) throw error;
        later = error;
      }
    }
    if (later && shards !== undefined) throw later;
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

  /** Ends the work of shards that another node continues, what runs on one node first. */
  async releaseShards(isLeaving: (shard: number) => boolean): Promise<void> {
    const left = getOwnShards(this.#shards);
    const release = (all: readonly Service[]) => Promise.all(all.map((one) => one.releaseShards?.(isLeaving, left)));
    const all = this.#all.toReversed();
    if (isLeaving(FIRST_SHARD)) await release(all.filter(isForOneNode));
    await release(all.filter((one) => !isForOneNode(one)));
  }

  async stop(): Promise<void> {
    for (const one of this.#all.toReversed()) await one.stop?.();
  }
}
