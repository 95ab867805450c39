// This process as one node of a cluster: it is alive for the others, takes the lease when it is free, renews it, and knows by its own
// monotonic clock until when it may serve. One connection of its own, so that no group of commits keeps a renewal waiting.
import type { ReservedSQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { KEY_NAME } from "../engine/sealed.ts";
import { CommitError } from "../engine/store.ts";
import { checkDatabase } from "./checks.ts";
import {
  type ClusterView,
  forgetNode,
  type NodeRow,
  releaseLease,
  renewLease,
  seeNode,
  takeLease,
  viewCluster,
} from "./lease.ts";
import { migratePostgres } from "./migrate.ts";
import { changesOf, type SeenState, stateOf } from "./node-state.ts";
import { Primary } from "./primary.ts";
import { ReadStore } from "./read-store.ts";
import { PgStore } from "./store.ts";
import { sentNotice } from "./told/notice.ts";

/** A node stops serving so long before its lease ends: what it has sent by then is older than what the next node does. */
const MARGIN_MS = 1000;
/** How often a spare looks whether the lease is free. */
const LOOK_MS = 250;
/** A node reads from a database that has taken a write of it so long ago; an old primary, beside a new one, takes none. */
const CURRENT_MS = 1000;

export type NodeOptions = {
  /** postgres://user:password@host:port[,host:port...]/database. Holds a password: never logged. */
  readonly url: string;
  readonly id: string;
  readonly version: string;
  readonly lease_ms: number;
  /** Whether the others are told of what they answer reads and streams by. */
  readonly tells?: boolean;
  readonly clock: Clock;
  /** Another node has taken over: the process must stop. */
  fatal(error: Error): void;
};

export type NodeRole = "active" | "spare";

export class ClusterNode {
  readonly id: string;
  readonly #options: NodeOptions;
  readonly #primary: Primary;
  #view: ClusterView | undefined;
  #epoch = 0;
  /** By the monotonic clock. */
  #held_until = 0;
  #role: NodeRole = "spare";
  #timer: Timer | undefined;
  #lapse: Timer | undefined;
  #turn: Promise<void> = Promise.resolve();
  #store: PgStore | undefined;
  #reads: ReadStore | undefined;
  /** When the last beat began that was written, by the monotonic clock. */
  #written_at = Number.NEGATIVE_INFINITY;
  #wasServing = false;
  /** The database did not answer when it was asked last. */
  #isSilent = false;
  /** Another node has taken over from this one, which ends. */
  #isFollowed = false;
  /** What stands in the log. */
  #logged: SeenState | undefined;
  #left = false;
  readonly #waiting: (() => void)[] = [];
  readonly #onLapse: (() => void)[] = [];

  private constructor(options: NodeOptions, primary: Primary) {
    this.id = options.id;
    this.#options = options;
    this.#primary = primary;
  }

  /** Connects, checks the database, migrates it, and makes the node known. Throws UnsafeDatabaseError, NewerDatabaseError, CommitError. */
  static async join(options: NodeOptions): Promise<ClusterNode> {
    const primary = new Primary(options.url);
    try {
      const connection = await primary.writer();
      await checkDatabase(connection);
      await migratePostgres(connection, { now: options.clock.now() });
      const node = new ClusterNode(options, primary);
      await node.#show(connection);
      node.#view = await viewCluster(connection);
      node.#logChanges();
      node.#plan(LOOK_MS);
      return node;
    } catch (error) {
      await primary.close();
      throw error;
    }
  }

  get role(): NodeRole {
    return this.#role;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get state(): SeenState {
    const { leader, view } = this;
    const isActive = this.#role === "active";
    return stateOf({ isActive, serves: this.serves_ms > 0, isSilent: this.#isSilent, leader: leader?.id, view });
  }

  /** What was seen of the cluster last. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  /** The node that requests are passed on to; undefined while nobody is active, and when it is this one. */
  get leader(): NodeRow | undefined {
    const active = this.#view?.active;
    return active && active.id !== this.id ? active : undefined;
  }

  /** Milliseconds for which this node may still serve; 0 or less: it may not. */
  get serves_ms(): number {
    return this.#role === "active" ? this.#held_until - MARGIN_MS - this.#options.clock.monotonic() : 0;
  }

  /** Whether what the database says now is what it has acknowledged: it takes writes of this node. */
  get isCurrent(): boolean {
    return this.#options.clock.monotonic() - this.#written_at < CURRENT_MS;
  }

  /** Called each time this node may no longer serve, though it was active. */
  onLapse(listener: () => void): void {
    this.#onLapse.push(listener);
  }

  /** Resolves when this node is the active one, and its store may be opened; rejects when the signal is aborted. */
  async lead(signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const stop = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    try {
      this.#plan(0);
      await promise;
    } finally {
      signal?.removeEventListener("abort", stop);
      // Who was told to stop wants the lease no more.
      if (this.#waiting.includes(resolve)) this.#waiting.splice(this.#waiting.indexOf(resolve), 1);
    }
  }

  /** The fingerprint of the key that the nodes share; undefined before the first one has started. */
  async keyFingerprint(): Promise<string | undefined> {
    const sql = await this.#primary.writer();
    const [row] = await sql.unsafe("select value from settings where key = $1", [KEY_NAME]);
    return row?.value;
  }

  /** The store of the active node. */
  openStore({ queueBytes }: { queueBytes?: number } = {}): PgStore {
    if (this.#role !== "active") throw new CommitError("closed", "this node is not the active one");
    const { fatal, tells = false } = this.#options;
    const primary = new Primary(this.#options.url);
    this.#store = new PgStore(primary, this.id, this.#epoch, {
      fatal,
      tells,
      ...(queueBytes === undefined ? {} : { queueBytes }),
    });
    return this.#store;
  }

  /** What a spare reads with, on connections of its own. `refuse` throws what a write is answered with. */
  openReads(refuse: () => never): ReadStore {
    this.#reads = new ReadStore(new Primary(this.#options.url), refuse);
    return this.#reads;
  }

  /** Whether another node is alive that takes the lease when it is given up. */
  get hasNext(): boolean {
    const { lease_ms } = this.#options;
    return this.#view?.nodes.some(({ id, silent_ms }) => id !== this.id && silent_ms < lease_ms) === true;
  }

  /** Gives up the lease, and stands by without wanting it again. The store must be closed by then. */
  async giveUp(): Promise<void> {
    if (this.#role !== "active") return;
    this.#lapse?.cancel();
    const release = async (): Promise<void> => {
      await this.#within((sql) => releaseLease(sql, this.id, this.#epoch)).catch((error) => {
        log("cluster").warn("the lease could not be given up; the next node waits for its end: {error}", { error });
      });
      this.#role = "spare";
    };
    // Behind a renewal that is under way.
    this.#turn = this.#turn.then(release);
    await this.#turn;
    this.#plan(0);
  }

  /** Leaves, without the lease. The store must be closed by then. */
  async leave(): Promise<void> {
    if (this.#left) return;
    await this.giveUp();
    this.#left = true;
    this.#timer?.cancel();
    await this.#turn;
    await this.#within((sql) => forgetNode(sql, this.id)).catch(() => {
      // It is shown for an hour, and nothing more.
    });
    await this.#primary.close();
  }

  /** How often the lease is renewed or looked at. */
  get #pause(): number {
    return this.#role === "active" ? Math.min(1000, this.#options.lease_ms / 6) : LOOK_MS;
  }

  #plan(ms: number): void {
    this.#timer?.cancel();
    if (this.#left) return;
    this.#timer = this.#options.clock.after(ms, () => {
      this.#turn = this.#turn.then(() => this.#beat()).finally(() => this.#plan(this.#pause));
    });
  }

  async #beat(): Promise<void> {
    if (this.#left) return;
    let hasAnswered = false;
    const began_at = this.#options.clock.monotonic();
    try {
      await this.#within(async (sql) => {
        // First, since it only reads: what is written waits for a standby that is away, and then it has to be known why.
        this.#view = await viewCluster(sql);
        hasAnswered = true;
        await (this.#role === "active" ? this.#renew(sql) : this.#try(sql));
        if (!this.#isFollowed) await this.#show(sql);
      });
      this.#isSilent = false;
      this.#written_at = began_at;
      if (!this.#isFollowed) this.#logChanges();
    } catch (error) {
      this.#isSilent = !hasAnswered;
      this.#logChanges(error);
      this.#primary.lost();
      this.#reads?.reconnect();
      // Its connection hangs in the same way, and after a failover another database has to be found.
      if (this.#role === "active" && this.serves_ms <= 0) this.#store?.reconnect();
    }
  }

  /** A database that hangs must not keep the next try waiting: the connection is given up, nothing is cancelled. */
  async #within(work: (sql: ReservedSQL) => Promise<void>): Promise<void> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#options.clock.after(Math.max(1000, this.#options.lease_ms / 3), () =>
      reject(new Error("no answer in time")),
    );
    try {
      await Promise.race([this.#primary.writer().then(work), late]);
    } finally {
      timer.cancel();
    }
  }

  async #renew(sql: ReservedSQL): Promise<void> {
    const { clock, lease_ms, tells, fatal } = this.#options;
    const asked_at = clock.monotonic();
    if (!(await renewLease(sql, this.id, this.#epoch, lease_ms))) {
      this.#role = "spare";
      this.#held_until = 0;
      this.#isFollowed = true;
      fatal(new CommitError("closed", "another node has taken over"));
      return;
    }
    this.#hold(asked_at + lease_ms);
    this.#wasServing = true;
    // The sign by which the others know that they hear.
    const { text, params } = sentNotice({ epoch: this.#epoch });
    if (tells) await sql.unsafe(text, params as never[]);
  }

  async #try(sql: ReservedSQL): Promise<void> {
    if (this.#waiting.length === 0 || this.leader) return;
    const { clock, lease_ms } = this.#options;
    const asked_at = clock.monotonic();
    const epoch = await takeLease(sql, this.id, lease_ms);
    if (epoch === undefined) return;
    this.#epoch = epoch;
    this.#hold(asked_at + lease_ms);
    this.#role = "active";
    this.#wasServing = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Tells the others that it is alive. */
  async #show(sql: ReservedSQL): Promise<void> {
    const { id, version } = this.#options;
    await seeNode(sql, { id, address: id, version });
  }

  /** A line of the log for each thing that has changed. */
  #logChanges(reason?: unknown): void {
    const now = this.state;
    const { id } = this;
    const values = { id, epoch: this.#epoch, ...(now.holder && { holder: now.holder }), ...(reason ? { reason } : {}) };
    for (const { level, text } of changesOf(this.#logged, now)) log("cluster")[level](text, values);
    this.#logged = now;
  }

  #hold(until: number): void {
    this.#held_until = until;
    this.#lapse?.cancel();
    const { clock } = this.#options;
    this.#lapse = clock.after(Math.max(0, until - MARGIN_MS - clock.monotonic()), () => this.#noteLapse());
  }

  #noteLapse(): void {
    if (this.#role !== "active" || !this.#wasServing || this.serves_ms > 0) return;
    this.#wasServing = false;
    this.#logChanges();
    for (const listener of this.#onLapse) listener();
  }
}
