// A node of a cluster with one active node: acquires the lease when it is free, and renews it while active.
import type { ReservedSQL } from "bun";
import { log } from "#base/log.ts";
import { CommitError } from "../engine/store.ts";
import { BaseNode, CHECK_INTERVAL_MS, type NodeOptions, type NodeRole, withPrimary } from "./base-node.ts";
import { acquireLease, type ClusterView, type NodeRow, releaseLease, renewLease, requireAlone } from "./lease.ts";
import { type SeenState, toSeenState } from "./node-state.ts";
import { Primary } from "./primary.ts";
import { PgStore } from "./store.ts";

export class ClusterNode extends BaseNode {
  #epoch = 0;
  #role: NodeRole = "spare";
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  /** Connects, checks and migrates the database, and registers the node. Throws UnsafeDatabaseError, DatabaseVersionError, CommitError. */
  static join(options: NodeOptions): Promise<ClusterNode> {
    return withPrimary(options, async (sql, primary) => {
      const node = new ClusterNode(options, primary);
      requireAlone(await node.loadView(sql));
      await node.begin(sql);
      return node;
    });
  }

  get role(): NodeRole {
    return this.#role;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get state(): SeenState {
    const { leader, view, isActive, isSilent } = this;
    return toSeenState({ isActive, serves: this.serves_ms > 0, isSilent, leader: leader?.id, view });
  }

  /** The node to which requests are forwarded; undefined when no node or this one is active. */
  get leader(): NodeRow | undefined {
    const active = this.view?.active;
    return active && active.id !== this.id ? active : undefined;
  }

  /**
   * Resolves when this node is active and its store may be opened. Rejects when the signal is aborted. Rejects with UnsafeDatabaseError
   * if this node can never be the only active one, because every node is active.
   */
  async whenActive(signal?: AbortSignal): Promise<void> {
    const waiting = Promise.withResolvers<void>();
    this.#waiting.push(waiting);
    const onAbort = (): void => waiting.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      this.scheduleHeartbeat(0);
      await waiting.promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      // A node that was asked to stop does not take the lease.
      if (this.#waiting.includes(waiting)) this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    }
  }

  /** Opens the store of the active node. */
  openStore({ queueBytes }: { queueBytes?: number } = {}): PgStore {
    if (!this.isActive) throw new CommitError("closed", "this node is not the active one");
    const { url, fatal, sendsNotices = false } = this.options;
    this.store = new PgStore(new Primary(url, { inOrder: true }), this.id, this.#epoch, {
      fatal,
      sendsNotices,
      ...(queueBytes === undefined ? {} : { queueBytes }),
    });
    return this.store;
  }

  /** Returns whether another living node would take over the lease. */
  get hasNext(): boolean {
    const { lease_ms } = this.options;
    return this.view?.nodes.some(({ id, silent_ms }) => id !== this.id && silent_ms < lease_ms) === true;
  }

  /** Releases the lease permanently and becomes a standby. The store must be closed. */
  async releaseLease(): Promise<void> {
    if (!this.isActive) return;
    this.cancelLapse();
    const release = async (): Promise<void> => {
      await this.withWriter((sql) => releaseLease(sql, this.id, this.#epoch)).catch((error) => {
        log("cluster").warn("the lease could not be given up; the next node waits for its end: {error}", { error });
      });
      this.#role = "spare";
    };
    await this.runSerially(release);
  }

  /** Leaves the cluster, without the lease. The store must be closed. */
  async leaveCluster(): Promise<void> {
    if (this.hasLeft) return;
    await this.releaseLease();
    await this.end();
  }

  /** How often the lease is renewed or checked. */
  protected get pause(): number {
    return this.isActive ? Math.min(1000, this.options.lease_ms / 6) : CHECK_INTERVAL_MS;
  }

  protected async runHeartbeat(sql: ReservedSQL): Promise<void> {
    const view = await this.loadView(sql);
    if (this.isActive) return await this.#renew(sql);
    await this.#tryAcquire(sql, view);
    const sender = await this.sendHeartbeat(sql);
    // Without the count of sent notices, missed ones cannot be detected.
    if (sender) this.listener.see([sender]);
  }

  async #renew(sql: ReservedSQL): Promise<void> {
    const requestedAt = this.options.clock.monotonic();
    if (await renewLease(sql, this.renewal)) return this.recordLease(requestedAt);
    this.#role = "spare";
    this.onLeaseLost();
  }

  async #tryAcquire(sql: ReservedSQL, view: ClusterView): Promise<void> {
    if (this.#waiting.length === 0 || this.leader) return;
    try {
      requireAlone(view);
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
      return;
    }
    const { clock, lease_ms } = this.options;
    const requestedAt = clock.monotonic();
    const epoch = await acquireLease(sql, this.id, lease_ms);
    if (epoch === undefined) return;
    this.#epoch = epoch;
    this.#role = "active";
    this.recordLease(requestedAt);
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }
}
