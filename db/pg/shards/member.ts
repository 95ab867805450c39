// A node of a cluster whose nodes are all active: it owns some shards, takes those of dead nodes, and hands its own over to nodes with
// fewer (docs/spec/cluster-nodes.md).
import type { ReservedSQL } from "bun";
import { log } from "#base/log.ts";
import type { OtherNode, Shards } from "#base/shards.ts";
import { CommitError } from "../../engine/store.ts";
import {
  BaseNode,
  CHECK_INTERVAL_MS,
  type NodeOptions,
  type NodeRole,
  withPrimary,
  withTimeout,
} from "../base-node.ts";
import { type SeenState, toSeenState } from "../node-state.ts";
import { Primary } from "../primary.ts";
import { PgStore } from "../store.ts";
import {
  assignOrphanedShards,
  type Holder,
  joinShards,
  planBalance,
  reclaimShards,
  removeNodeFromShards,
  renewShards,
  transferShards,
} from "./moves.ts";
import { Possession, type ShardsHandler } from "./ownership.ts";
import { isUneven, loadShardTable, msUntilNextExpiry, type ShardTable } from "./table.ts";

/** How often the lease is renewed: twice in the period within which a write must have succeeded so that the node may read. */
const RENEW_INTERVAL_MS = 500;
/** How often the node checks all nodes and the database. */
const VIEW_INTERVAL_MS = 1000;
/** How often the node checks while shards are about to move, because callers wait for that. */
const MOVING_CHECK_INTERVAL_MS = 50;
/**
 * Retry interval for an unreachable node, and the number of attempts before it is logged. A node that has just joined does not listen yet.
 */
const REACH_RETRY_MS = 1000;
const MAX_REACH_TRIES = 3;
/** Maximum shards that move at a time, because they briefly have no owner. */
const MAX_CONCURRENT_MOVES = 64;
/** Time limit for moving shards. A move waits for groups, and the database ends groups that stall after two seconds. */
const MOVE_TIMEOUT_MS = 10_000;

export class ShardsMember extends BaseNode implements Shards {
  readonly epoch: number;
  readonly #possession: Possession;
  /** A separate connection for moving shards, which waits for others and must not delay renewals. */
  readonly #mover: Primary;
  #moves: Promise<unknown> = Promise.resolve();
  #table: ShardTable = { owners: [], isOrphaned: false };
  /** Incremented when this node moves shards, to detect outdated views. */
  #checkRequests = 0;
  #checked = Promise.withResolvers<void>();
  #renewedAt: number;
  #seenAt = Number.NEGATIVE_INFINITY;
  /** Every renewal since this time was in time. */
  #steadySince = Number.NEGATIVE_INFINITY;
  #assigning: Promise<void> | undefined;
  #balancing: Promise<void> | undefined;
  #nextBalanceAt = Number.NEGATIVE_INFINITY;
  /** Nodes that were unreachable when this one had shards for them, with the number of attempts. */
  readonly #unreachable = new Map<string, number>();
  #canReach: ((node: OtherNode) => Promise<boolean>) | undefined;
  #isPaused = false;
  #hasHandedOver = false;

  private constructor(options: NodeOptions, primary: Primary, epoch: number, joined_at: number) {
    super(options, primary);
    this.epoch = epoch;
    this.#renewedAt = joined_at;
    this.#mover = new Primary(options.url);
    this.#possession = new Possession({
      holder: this.#holder,
      clock: options.clock,
      beforeCome: () => this.store?.discardNumbers(),
    });
  }

  /**
   * Connects, checks and migrates the database, and joins the living nodes; a first node gets all shards. Throws UnsafeDatabaseError (also
   * while a single node is active), DatabaseVersionError, CommitError.
   */
  static join(options: NodeOptions): Promise<ShardsMember> {
    const { id, lease_ms, clock } = options;
    return withPrimary(options, async (sql, primary) => {
      const joined_at = clock.monotonic();
      const member = new ShardsMember(options, primary, await joinShards(sql, id, lease_ms), joined_at);
      try {
        member.recordLease(joined_at);
        await member.begin(sql);
        member.listener.subscribe(({ all, moves, epoch }) => {
          if (all || (moves && epoch !== member.epoch)) member.#wake();
        });
        await member.#checkNow();
        await member.#assigning;
        return member;
      } catch (error) {
        await member.leaveCluster();
        throw error;
      }
    });
  }

  /** The node is active until other nodes have taken over, or until it has handed over all its shards. */
  get role(): NodeRole {
    return this.isFollowed || this.#hasHandedOver || this.hasLeft ? "spare" : "active";
  }

  get state(): SeenState {
    const { isActive, isSilent, view, count } = this;
    return {
      ...toSeenState({ isActive, serves: this.serves_ms > 0, isSilent, leader: undefined, view }),
      parts: count,
    };
  }

  has(shard: number): boolean {
    return this.#possession.has(shard);
  }

  get isFirst(): boolean {
    return this.#possession.isFirst;
  }

  get arrivals(): number {
    return this.#possession.arrivals;
  }

  /** The number of shards that this node owns. */
  get count(): number {
    return this.#possession.count;
  }

  nodeOf(shard: number): OtherNode | undefined {
    return this.#possession.nodeOf(shard);
  }

  /** Returns the epoch of the node at this address, if its shards have not been taken over; otherwise undefined. */
  incarnationAt(address: string): number | undefined {
    return this.#table.owners.find((owner) => owner.address === address)?.epoch;
  }

  /** Whether another living node can take over this node's shards. */
  get hasNext(): boolean {
    return this.#table.owners.some(({ id, lives }) => lives && id !== this.id);
  }

  /** Sets the handler. Before this call, this node hands over no shards. The handler adopts the shards that the node already owns. */
  onMoves(handler: ShardsHandler): void {
    this.#possession.onMoves(handler);
  }

  /** Prevents moves to unreachable nodes, where the shards would be unusable. */
  requireReachable(canReach: (node: OtherNode) => Promise<boolean>): void {
    this.#canReach = canReach;
  }

  /** Opens the store of this node, which writes for its shards and for data without a shard. */
  openStore({ queueBytes }: { queueBytes?: number } = {}): PgStore {
    if (!this.isActive) throw new CommitError("closed", "this node is not active");
    const { url, fatal } = this.options;
    this.store = new PgStore(new Primary(url, { inOrder: true }), this.id, this.epoch, {
      fatal,
      queueBytes,
      sendsNotices: true,
      isShared: true,
      listener: this.listener,
    });
    return this.store;
  }

  /**
   * Stops moving shards until the node leaves. Called before dependencies of the handler are closed. Resolves when no move is in progress.
   */
  async rest(): Promise<void> {
    this.#isPaused = true;
    this.#possession.pauseAdopting();
    await this.#balancing;
  }

  /** Hands all its shards over to living nodes, and then only observes ownership. The store must be closed. */
  async handOverAll(): Promise<void> {
    if (this.#hasHandedOver) return;
    this.#hasHandedOver = true;
    this.cancelLapse();
    this.#isPaused = true;
    const handOverShards = async (): Promise<void> => {
      if (this.isFollowed) return;
      this.#possession.dropAll();
      await this.withWriter((sql) => removeNodeFromShards(sql, this.#holder, this.options.lease_ms)).catch((error) => {
        log("cluster").warn("its parts could not be given away; the others wait for the end of its lease: {error}", {
          error,
        });
      });
    };
    await this.runSerially(handOverShards);
  }

  /** Leaves the cluster. The store must be closed. */
  async leaveCluster(): Promise<void> {
    if (this.hasLeft) return;
    await this.handOverAll();
    await this.end();
    this.#checked.resolve();
    await this.#mover.close();
  }

  get #holder(): Holder {
    return { node: this.id, epoch: this.epoch };
  }

  /** The time until the next renewal, or until another node's lease expires, which no notice announces. */
  protected get pause(): number {
    const due = this.#renewedAt + this.#renewInterval - this.options.clock.monotonic();
    const next = due > 0 ? due : CHECK_INTERVAL_MS;
    const mayGive = this.options.clock.monotonic() >= this.#nextBalanceAt;
    const isMoving = this.#table.isOrphaned || (isUneven(this.#table) && mayGive);
    return Math.ceil(Math.min(next, isMoving ? MOVING_CHECK_INTERVAL_MS : msUntilNextExpiry(this.#table)));
  }

  get #renewInterval(): number {
    return Math.min(RENEW_INTERVAL_MS, this.options.lease_ms / 6);
  }

  protected async runHeartbeat(sql: ReservedSQL): Promise<void> {
    if (this.isFollowed) return this.#checked.resolve();
    const now = this.options.clock.monotonic();
    if (!this.#hasHandedOver && now - this.#seenAt >= VIEW_INTERVAL_MS) {
      await this.loadView(sql);
      this.#seenAt = now;
    }
    await this.#checkShards(sql);
  }

  protected override reconnect(): void {
    super.reconnect();
    this.#mover.dropConnections();
  }

  /** Returns undefined if the renewal was rejected. */
  async #renewLease(sql: ReservedSQL): Promise<ShardTable | undefined> {
    const requestedAt = this.options.clock.monotonic();
    const table = await renewShards(sql, this.renewal);
    if (!table) return undefined;
    if (this.serves_ms <= 0) this.#steadySince = requestedAt;
    this.#renewedAt = requestedAt;
    this.recordLease(requestedAt);
    return table;
  }

  /** Loads the shard table, together with a renewal if one is due, because one query does both. */
  async #checkShards(sql: ReservedSQL): Promise<void> {
    const isDue = (): boolean => this.options.clock.monotonic() - this.#renewedAt >= this.#renewInterval;
    for (let moved = -1; moved !== this.#checkRequests; ) {
      moved = this.#checkRequests;
      const table = await (!this.#hasHandedOver && isDue() ? this.#renewLease(sql) : loadShardTable(sql));
      if (!table) return this.onLeaseLost();
      this.#table = table;
    }
    this.listener.see(this.#table.owners.map(({ sender }) => sender));
    this.#possession.applyTable(this.#table);
    this.#checked.resolve();
    this.#checked = Promise.withResolvers();
    if (!this.#isPaused && this.serves_ms > 0) this.#moveShards();
  }

  /** Resolves after a check that began after this call. */
  async #checkNow(): Promise<void> {
    if (!this.isActive) return;
    this.#wake();
    await this.#checked.promise;
  }

  #wake(): void {
    this.#checkRequests++;
    this.scheduleHeartbeat(0);
  }

  /** Serializes moves. A move that timed out may have happened; the next check shows that. */
  #runMove<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    const done = this.#moves.then(() =>
      withTimeout(this.options.clock, MOVE_TIMEOUT_MS, () => this.#mover.writer().then(work)),
    );
    this.#moves = done.catch(() => this.#mover.dropConnections());
    return done;
  }

  #moveShards(): void {
    const now = this.options.clock.monotonic();
    // After an outage of the database for all nodes, the other nodes need time to renew their leases.
    const isSteady = now - this.#steadySince >= this.options.lease_ms / 2;
    if (this.#table.isOrphaned && isSteady) {
      this.#assigning ??= this.#assignOrphans().finally(() => {
        this.#assigning = undefined;
      });
    } else if (isUneven(this.#table) && now >= this.#nextBalanceAt) {
      this.#balancing ??= this.#balance().finally(() => {
        this.#balancing = undefined;
      });
    }
  }

  async #assignOrphans(): Promise<void> {
    try {
      await this.#runMove((sql) => assignOrphanedShards(sql, this.options.lease_ms, this.#unreachable));
    } catch (error) {
      log("cluster").warn("could not assign unowned parts yet: {error}", { error });
      return;
    }
    await this.#checkNow();
  }

  /** Checks which of these nodes are reachable. */
  async #checkReached(ids: ReadonlySet<string>): Promise<void> {
    const checkReachable = async ({ id, address }: OtherNode): Promise<void> => {
      const isReached = (await this.#canReach?.({ id, address })) ?? true;
      const tries = isReached ? 0 : (this.#unreachable.get(id) ?? 0) + 1;
      if (isReached) this.#unreachable.delete(id);
      else this.#unreachable.set(id, tries);
      if (tries === MAX_REACH_TRIES)
        log("cluster").warn("node {node} gets no parts: no node answers at its address {address}", {
          node: id,
          address,
        });
    };
    await Promise.all(this.#table.owners.filter(({ id }) => ids.has(id)).map(checkReachable));
  }

  async #balance(): Promise<void> {
    const { clock, lease_ms } = this.options;
    try {
      const planned = await this.#runMove((sql) => planBalance(sql, lease_ms));
      const ownMoves = planned.filter(({ part }) => this.#possession.canRelease(part));
      await this.#checkReached(new Set(ownMoves.map(({ to }) => to)));
      const moves = ownMoves.filter(({ to }) => !this.#unreachable.has(to));
      if (moves.length < ownMoves.length) this.#nextBalanceAt = clock.monotonic() + REACH_RETRY_MS;
      for (let start = 0; start < moves.length && !this.#isPaused; start += MAX_CONCURRENT_MOVES) {
        const batch = moves.slice(start, start + MAX_CONCURRENT_MOVES);
        const leaving = await this.#possession.releaseShards(
          batch.map(({ part }) => part),
          lease_ms,
        );
        try {
          const moved = new Set(
            leaving.isDone ? await this.#runMove((sql) => transferShards(sql, this.#holder, batch)) : [],
          );
          const kept = leaving.shards.filter((shard) => !moved.has(shard));
          if (kept.length > 0) await this.#runMove((sql) => reclaimShards(sql, this.#holder, kept));
        } finally {
          await this.#checkNow();
          if (!this.#possession.settle(leaving)) this.#nextBalanceAt = clock.monotonic() + lease_ms;
        }
        if (clock.monotonic() < this.#nextBalanceAt) return;
      }
    } catch (error) {
      log("cluster").warn("parts could not be handed over: {error}", { error });
    }
  }
}
