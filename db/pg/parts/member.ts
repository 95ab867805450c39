// A node of a cluster whose nodes are all active: it has some of the parts, takes those of nodes that have died, and hands its own over where another
// has fewer (docs/spec/cluster-nodes.md).
import type { ReservedSQL } from "bun";
import { log } from "#base/log.ts";
import type { OtherNode, Parts } from "#base/parts.ts";
import { CommitError } from "../../engine/store.ts";
import { connected, LivingNode, LOOK_MS, type NodeOptions, type NodeRole, soon } from "../living-node.ts";
import { type SeenState, toSeenState } from "../node-state.ts";
import { Primary } from "../primary.ts";
import { PgStore } from "../store.ts";
import {
  type Holder,
  handOver,
  joinParts,
  keepParts,
  leaveParts,
  plannedMoves,
  renewParts,
  takeOver,
} from "./moves.ts";
import { type PartsHandler, Possession } from "./possession.ts";
import { isUneven, lookAtParts, nextEnd, type PartsTable } from "./table.ts";

/** How often the lease is renewed: twice in the time in which what is read must have been written to. */
const RENEW_MS = 500;
/** How often it looks how all nodes and the database are. */
const SEE_MS = 1000;
/** How often it looks while parts are about to move: anyone who waits for one waits for this, too. */
const MOVING_MS = 50;
/** How soon a node that could not be reached is tried again, and how often before it is said: one that has just joined does not listen yet. */
const REACH_AGAIN_MS = 1000;
const REACH_TRIES = 3;
/** Parts that move at a time: so many are nobody's for a moment. */
const AT_ONCE = 64;
/** A transaction that moves parts waits for groups, of which the database ends those that stand still after two seconds. */
const MOVE_MS = 10_000;

export class PartsMember extends LivingNode implements Parts {
  readonly epoch: number;
  readonly #held: Possession;
  /** What moves parts waits for others, so it has a connection of its own: no renewal may wait for it. */
  readonly #mover: Primary;
  #moves: Promise<unknown> = Promise.resolve();
  #table: PartsTable = { owners: [], isOrphaned: false };
  /** Raised by what this node has moved: what was seen before is older. */
  #moved = 0;
  #looked = Promise.withResolvers<void>();
  #renewed_at: number;
  #seen_at = Number.NEGATIVE_INFINITY;
  /** Since when every renewal was in time. */
  #steady_since = Number.NEGATIVE_INFINITY;
  #taking: Promise<void> | undefined;
  #giving: Promise<void> | undefined;
  #gives_again_at = Number.NEGATIVE_INFINITY;
  /** Nodes that this one could not reach when it had something to give them, and how often it has tried. */
  readonly #unreached = new Map<string, number>();
  #reaches: ((node: OtherNode) => Promise<boolean>) | undefined;
  #isResting = false;
  #hasGiven = false;

  private constructor(options: NodeOptions, primary: Primary, epoch: number, joined_at: number) {
    super(options, primary);
    this.epoch = epoch;
    this.#renewed_at = joined_at;
    this.#mover = new Primary(options.url);
    this.#held = new Possession({
      holder: this.#holder,
      clock: options.clock,
      beforeCome: () => this.store?.giveUpNumbers(),
    });
  }

  /**
   * Connects, checks the database, migrates it, and makes the node one of those that live; a first node has all parts then. Throws UnsafeDatabaseError
   * (also while a node is active alone), DatabaseVersionError, CommitError.
   */
  static join(options: NodeOptions): Promise<PartsMember> {
    const { id, lease_ms, clock } = options;
    return connected(options, async (sql, primary) => {
      const joined_at = clock.monotonic();
      const member = new PartsMember(options, primary, await joinParts(sql, id, lease_ms), joined_at);
      try {
        member.hold(joined_at);
        await member.begin(sql);
        member.listener.hear(({ all, moves, epoch }) => {
          if (all || (moves && epoch !== member.epoch)) member.#wake();
        });
        await member.#lookNow();
        await member.#taking;
        return member;
      } catch (error) {
        await member.leave();
        throw error;
      }
    });
  }

  /** Active until others have taken over, or it has given all away. */
  get role(): NodeRole {
    return this.isFollowed || this.#hasGiven || this.hasLeft ? "spare" : "active";
  }

  get state(): SeenState {
    const { isActive, isSilent, view, count } = this;
    return {
      ...toSeenState({ isActive, serves: this.serves_ms > 0, isSilent, leader: undefined, view }),
      parts: count,
    };
  }

  has(part: number): boolean {
    return this.#held.has(part);
  }

  get isFirst(): boolean {
    return this.#held.isFirst;
  }

  get comings(): number {
    return this.#held.comings;
  }

  /** How many parts it has. */
  get count(): number {
    return this.#held.count;
  }

  nodeOf(part: number): OtherNode | undefined {
    return this.#held.nodeOf(part);
  }

  /** The epoch of the node there, whose parts nobody has taken; undefined where none exists. */
  lifeAt(address: string): number | undefined {
    return this.#table.owners.find((owner) => owner.address === address)?.epoch;
  }

  /** Whether another node lives, which takes what this one gives away. */
  get hasNext(): boolean {
    return this.#table.owners.some(({ id, lives }) => lives && id !== this.id);
  }

  /** Until this is called nothing is handed over; what it has by then is adopted. */
  onMoves(handler: PartsHandler): void {
    this.#held.onMoves(handler);
  }

  /** From now on nobody is given anything who cannot be reached: nobody could ask for it there. */
  onlyWhereReached(reaches: (node: OtherNode) => Promise<boolean>): void {
    this.#reaches = reaches;
  }

  /** The store of this node, which writes for its parts and for what is of none. */
  openStore({ queueBytes }: { queueBytes?: number } = {}): PgStore {
    if (!this.isActive) throw new CommitError("closed", "this node is not active");
    const { url, fatal } = this.options;
    this.store = new PgStore(new Primary(url, { inOrder: true }), this.id, this.epoch, {
      fatal,
      queueBytes,
      tells: true,
      isShared: true,
      listener: this.listener,
    });
    return this.store;
  }

  /** From now on no part moves, until it leaves: called before what the handler needs is closed. Resolves when nothing is on its way. */
  async rest(): Promise<void> {
    this.#isResting = true;
    this.#held.rest();
    await this.#giving;
  }

  /** Gives all that it has to those who live, and sees from then on only who has it. The store must be closed by then. */
  async giveUp(): Promise<void> {
    if (this.#hasGiven) return;
    this.#hasGiven = true;
    this.endLapse();
    this.#isResting = true;
    const give = async (): Promise<void> => {
      if (this.isFollowed) return;
      this.#held.giveAll();
      await this.within((sql) => leaveParts(sql, this.#holder, this.options.lease_ms)).catch((error) => {
        log("cluster").warn("its parts could not be given away; the others wait for the end of its lease: {error}", {
          error,
        });
      });
    };
    await this.inTurn(give);
  }

  /** Is no node any more. The store must be closed by then. */
  async leave(): Promise<void> {
    if (this.hasLeft) return;
    await this.giveUp();
    await this.end();
    this.#looked.resolve();
    await this.#mover.close();
  }

  get #holder(): Holder {
    return { node: this.id, epoch: this.epoch };
  }

  /** Until the next renewal, or until a lease ends of which nobody would be told. */
  protected get pause(): number {
    const due = this.#renewed_at + this.#renewEvery - this.options.clock.monotonic();
    const next = due > 0 ? due : LOOK_MS;
    const mayGive = this.options.clock.monotonic() >= this.#gives_again_at;
    const isMoving = this.#table.isOrphaned || (isUneven(this.#table) && mayGive);
    return Math.ceil(Math.min(next, isMoving ? MOVING_MS : nextEnd(this.#table)));
  }

  get #renewEvery(): number {
    return Math.min(RENEW_MS, this.options.lease_ms / 6);
  }

  protected async beat(sql: ReservedSQL): Promise<void> {
    if (this.isFollowed) return this.#looked.resolve();
    const now = this.options.clock.monotonic();
    if (!this.#hasGiven && now - this.#seen_at >= SEE_MS) {
      await this.see(sql);
      this.#seen_at = now;
    }
    await this.#look(sql);
  }

  protected override reconnect(): void {
    super.reconnect();
    this.#mover.lost();
  }

  /** Undefined where the renewal was refused. */
  async #renewed(sql: ReservedSQL): Promise<PartsTable | undefined> {
    const asked_at = this.options.clock.monotonic();
    const table = await renewParts(sql, this.renewal);
    if (!table) return undefined;
    if (this.serves_ms <= 0) this.#steady_since = asked_at;
    this.#renewed_at = asked_at;
    this.hold(asked_at);
    return table;
  }

  /** With a renewal where that is due: both are one question. */
  async #look(sql: ReservedSQL): Promise<void> {
    const isDue = (): boolean => this.options.clock.monotonic() - this.#renewed_at >= this.#renewEvery;
    for (let moved = -1; moved !== this.#moved; ) {
      moved = this.#moved;
      const table = await (!this.#hasGiven && isDue() ? this.#renewed(sql) : lookAtParts(sql));
      if (!table) return this.follow();
      this.#table = table;
    }
    this.listener.see(this.#table.owners.map(({ teller }) => teller));
    this.#held.see(this.#table);
    this.#looked.resolve();
    this.#looked = Promise.withResolvers();
    if (!this.#isResting && this.serves_ms > 0) this.#move();
  }

  /** Resolves after a look that has begun later than this call. */
  async #lookNow(): Promise<void> {
    if (!this.isActive) return;
    this.#wake();
    await this.#looked.promise;
  }

  #wake(): void {
    this.#moved++;
    this.plan(0);
  }

  /** One after the other. What has not come in time may be done all the same: the next look tells. */
  #moving<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    const done = this.#moves.then(() => soon(this.options.clock, MOVE_MS, () => this.#mover.writer().then(work)));
    this.#moves = done.catch(() => this.#mover.lost());
    return done;
  }

  #move(): void {
    const now = this.options.clock.monotonic();
    // Where the database was away for all, the others are given time to renew theirs.
    const isSteady = now - this.#steady_since >= this.options.lease_ms / 2;
    if (this.#table.isOrphaned && isSteady) {
      this.#taking ??= this.#takeOver().finally(() => {
        this.#taking = undefined;
      });
    } else if (isUneven(this.#table) && now >= this.#gives_again_at) {
      this.#giving ??= this.#handOver().finally(() => {
        this.#giving = undefined;
      });
    }
  }

  async #takeOver(): Promise<void> {
    try {
      await this.#moving((sql) => takeOver(sql, this.options.lease_ms, this.#unreached));
    } catch (error) {
      log("cluster").warn("parts that nobody has could not be given out yet: {error}", { error });
      return;
    }
    await this.#lookNow();
  }

  /** Looks which of them can be reached. */
  async #reach(ids: ReadonlySet<string>): Promise<void> {
    const look = async ({ id, address }: OtherNode): Promise<void> => {
      const isReached = (await this.#reaches?.({ id, address })) ?? true;
      const tries = isReached ? 0 : (this.#unreached.get(id) ?? 0) + 1;
      if (isReached) this.#unreached.delete(id);
      else this.#unreached.set(id, tries);
      if (tries === REACH_TRIES)
        log("cluster").warn("node {node} gets no parts: nobody answers as a node at its address {address}", {
          node: id,
          address,
        });
    };
    await Promise.all(this.#table.owners.filter(({ id }) => ids.has(id)).map(look));
  }

  async #handOver(): Promise<void> {
    const { clock, lease_ms } = this.options;
    try {
      const planned = await this.#moving((sql) => plannedMoves(sql, lease_ms));
      const own = planned.filter(({ part }) => this.#held.mayLeave(part));
      await this.#reach(new Set(own.map(({ to }) => to)));
      const moves = own.filter(({ to }) => !this.#unreached.has(to));
      if (moves.length < own.length) this.#gives_again_at = clock.monotonic() + REACH_AGAIN_MS;
      for (let at = 0; at < moves.length && !this.#isResting; at += AT_ONCE) {
        const batch = moves.slice(at, at + AT_ONCE);
        const leaving = await this.#held.leave(
          batch.map(({ part }) => part),
          lease_ms,
        );
        try {
          const moved = new Set(leaving.isDone ? await this.#moving((sql) => handOver(sql, this.#holder, batch)) : []);
          const kept = leaving.parts.filter((part) => !moved.has(part));
          if (kept.length > 0) await this.#moving((sql) => keepParts(sql, this.#holder, kept));
        } finally {
          await this.#lookNow();
          if (!this.#held.settle(leaving)) this.#gives_again_at = clock.monotonic() + lease_ms;
        }
        if (clock.monotonic() < this.#gives_again_at) return;
      }
    } catch (error) {
      log("cluster").warn("parts could not be handed over: {error}", { error });
    }
  }
}
