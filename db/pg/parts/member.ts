// A node of a cluster whose nodes are all active: it owns some shards, takes those of dead nodes, and hands its own over to nodes with
// fewer (docs/spec/cluster-nodes.md).
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

/** How often the lease is renewed: twice within the time in which a write must have succeeded for reads to be allowed. */
const RENEW_MS = 500;
/** How often it checks all nodes and the database. */
const SEE_MS = 1000;
/** How often it checks while shards are about to move, since callers wait for that. */
const MOVING_MS = 50;
/** Retry interval for an unreachable node, and how often before it is logged: a node that has just joined is not listening yet. */
const REACH_AGAIN_MS = 1000;
const REACH_TRIES = 3;
/** Maximum shards that move at a time, because they briefly have no owner. */
const AT_ONCE = 64;
/** Moving shards waits for groups, and the database ends those that stall after two seconds. */
const MOVE_MS = 10_000;

export class PartsMember extends LivingNode implements Parts {
  readonly epoch: number;
  readonly #held: Possession;
  /** A separate connection for moving shards, which waits for others and must not delay renewals. */
  readonly #mover: Primary;
  #moves: Promise<unknown> = Promise.resolve();
  #table: PartsTable = { owners: [], isOrphaned: false };
  /** Incremented when this node moves shards, to detect outdated views. */
  #moved = 0;
  #looked = Promise.withResolvers<void>();
  #renewed_at: number;
  #seen_at = Number.NEGATIVE_INFINITY;
  /** Since when every renewal was in time. */
  #steady_since = Number.NEGATIVE_INFINITY;
  #taking: Promise<void> | undefined;
  #giving: Promise<void> | undefined;
  #gives_again_at = Number.NEGATIVE_INFINITY;
  /** Nodes that were unreachable when this one had shards for them, with the number of tries. */
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
   * Connects, checks and migrates the database, and joins the living nodes; a first node gets all shards. Throws UnsafeDatabaseError (also
   * while a single node is active), DatabaseVersionError, CommitError.
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

  /** Active until others have taken over, or it has handed all shards over. */
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

  /** Number of shards that it owns. */
  get count(): number {
    return this.#held.count;
  }

  nodeOf(part: number): OtherNode | undefined {
    return this.#held.nodeOf(part);
  }

  /** Returns the epoch of the node at this address, if its shards have not been taken over; otherwise undefined. */
  lifeAt(address: string): number | undefined {
    return this.#table.owners.find((owner) => owner.address === address)?.epoch;
  }

  /** Whether another living node can take over its shards. */
  get hasNext(): boolean {
    return this.#table.owners.some(({ id, lives }) => lives && id !== this.id);
  }

  /** Sets the handler. This node hands no shard over before this call; shards that it owns by then are adopted now. */
  onMoves(handler: PartsHandler): void {
    this.#held.onMoves(handler);
  }

  /** From now on, unreachable nodes get no shards, because they would be unusable there. */
  onlyWhereReached(reaches: (node: OtherNode) => Promise<boolean>): void {
    this.#reaches = reaches;
  }

  /** Opens the store of this node, which writes for its shards and for data without a shard. */
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

  /**
   * Stops moving shards until the node leaves. Called before dependencies of the handler are closed. Resolves when no move is in progress.
   */
  async rest(): Promise<void> {
    this.#isResting = true;
    this.#held.rest();
    await this.#giving;
  }

  /** Hands all its shards over to living nodes, and then only observes ownership. The store must be closed. */
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

  /** Leaves the cluster. The store must be closed. */
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

  /** Until the next renewal, or until another node's lease expires, which is not announced. */
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

  /** Returns undefined if the renewal was rejected. */
  async #renewed(sql: ReservedSQL): Promise<PartsTable | undefined> {
    const asked_at = this.options.clock.monotonic();
    const table = await renewParts(sql, this.renewal);
    if (!table) return undefined;
    if (this.serves_ms <= 0) this.#steady_since = asked_at;
    this.#renewed_at = asked_at;
    this.hold(asked_at);
    return table;
  }

  /** Combined with a renewal if one is due, since one query does both. */
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

  /** Resolves after a check that began after this call. */
  async #lookNow(): Promise<void> {
    if (!this.isActive) return;
    this.#wake();
    await this.#looked.promise;
  }

  #wake(): void {
    this.#moved++;
    this.plan(0);
  }

  /** Serializes moves. A move that timed out may have happened; the next check finds out. */
  #moving<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    const done = this.#moves.then(() => soon(this.options.clock, MOVE_MS, () => this.#mover.writer().then(work)));
    this.#moves = done.catch(() => this.#mover.lost());
    return done;
  }

  #move(): void {
    const now = this.options.clock.monotonic();
    // After an outage of the database for all nodes, gives the others time to renew their leases.
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

  /** Checks which of these nodes are reachable. */
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
