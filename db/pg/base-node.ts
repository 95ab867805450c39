// This process as a node of a cluster, in any role: sends heartbeats, tracks the other nodes, and knows by its monotonic clock until when
// it may serve. Uses a dedicated connection, so that commits never delay a renewal.
import type { ReservedSQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { KEY_NAME } from "../engine/key-check.ts";
import { CommitError } from "../engine/store.ts";
import { checkDatabase } from "./checks.ts";
import { type ClusterView, loadClusterView, type Renewal, removeNode, sendHeartbeat } from "./lease.ts";
import { migratePostgres } from "./migrate.ts";
import { describeChanges, type SeenState } from "./node-state.ts";
import { Listener } from "./notices/listener.ts";
import type { SenderHeartbeat } from "./notices/sent-counts.ts";
import { Primary } from "./primary.ts";
import { ReadStore } from "./read-store.ts";
import type { PgStore } from "./store.ts";

/** A node stops serving this long before its lease expires, so that all its statements precede those of the next node. */
const LEASE_MARGIN_MS = 1000;
/** How long a node that is about to leave looks for a successor. */
const REFRESH_TIMEOUT_MS = 500;
/** How often a node checks the other nodes. */
export const CHECK_INTERVAL_MS = 250;
/** A node reads only from a database that has accepted one of its writes this recently. A former primary accepts none. */
const CURRENT_TTL_MS = 1000;

export type NodeRole = "active" | "spare";

export type NodeOptions = {
  /** postgres://user:password@host:port[,host:port...]/database. Contains a password: never log it. */
  readonly url: string;
  readonly id: string;
  readonly version: string;
  readonly lease_ms: number;
  /** Whether the node sends notices of its changes, which other nodes need for reads and streams. */
  readonly sendsNotices?: boolean;
  /** `correct`: called with the database's time at each heartbeat, in milliseconds since 1970. */
  readonly clock: Clock & { correct?(database_now: number): void };
  /** Called when another node has taken over: the process must exit. */
  fatal(error: Error): void;
};

/** Connects, checks the database and migrates it. Throws UnsafeDatabaseError, DatabaseVersionError, CommitError. */
export const withPrimary = async <T>(
  { url, clock }: NodeOptions,
  begin: (sql: ReservedSQL, primary: Primary) => Promise<T>,
): Promise<T> => {
  const primary = new Primary(url);
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    await migratePostgres(connection, { now: clock.now() });
    return await begin(connection, primary);
  } catch (error) {
    await primary.close();
    throw error;
  }
};

/** Rejects if the work takes longer than this. */
export const withTimeout = async <T>(clock: Clock, ms: number, work: () => Promise<T>): Promise<T> => {
  const { promise: timedOut, reject } = Promise.withResolvers<never>();
  const timer = clock.after(ms, () => reject(new Error("no answer in time")));
  try {
    return await Promise.race([work(), timedOut]);
  } finally {
    timer.cancel();
  }
};

export abstract class BaseNode {
  readonly id: string;
  protected readonly options: NodeOptions;
  protected readonly primary: Primary;
  /** Receives messages of other nodes, for both of its stores. */
  protected readonly listener: Listener;
  /** The store for writes, once opened. */
  protected store: PgStore | undefined;
  /** Whether other nodes have taken over, so that this node is ending. */
  protected isFollowed = false;
  protected hasLeft = false;
  /** Serializes heartbeats and work that must not overlap them. */
  protected turn: Promise<void> = Promise.resolve();
  #view: ClusterView | undefined;
  #reads: ReadStore | undefined;
  /** Until when the lease is held, on the monotonic clock. */
  #heldUntil = 0;
  #timer: Timer | undefined;
  #lapseTimer: Timer | undefined;
  /** When the last successful write began, on the monotonic clock. */
  #writtenAt = Number.NEGATIVE_INFINITY;
  #wasServing = false;
  /** Whether the database failed to answer the last request. */
  #isSilent = false;
  #hasAnswered = false;
  /** The last logged state. */
  #logged: SeenState | undefined;
  readonly #lapseListeners: (() => void)[] = [];

  protected constructor(options: NodeOptions, primary: Primary) {
    this.id = options.id;
    this.options = options;
    this.primary = primary;
    this.listener = new Listener({ primary, clock: options.clock });
  }

  abstract get epoch(): number;
  abstract get state(): SeenState;
  abstract get role(): NodeRole;
  /** Milliseconds between two heartbeats. */
  protected abstract get pause(): number;
  /** The node's periodic work. Throws if the database did not do it. */
  protected abstract runHeartbeat(sql: ReservedSQL): Promise<void>;

  /** The last seen view of the cluster. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  /** Whether the node has a lease, even if it has expired. */
  protected get isActive(): boolean {
    return this.role === "active";
  }

  /** Milliseconds for which this node may still serve; 0 or less if it may not serve. */
  get serves_ms(): number {
    return this.isActive ? this.#heldUntil - LEASE_MARGIN_MS - this.options.clock.monotonic() : 0;
  }

  /** Whether the database still accepts this node's writes, so that its data is current. */
  get isCurrent(): boolean {
    return this.options.clock.monotonic() - this.#writtenAt < CURRENT_TTL_MS;
  }

  /** Refreshes the list of living nodes, because it may lack a new node. Gives up after a short time. */
  async refreshView(): Promise<void> {
    const { clock } = this.options;
    await withTimeout(clock, REFRESH_TIMEOUT_MS, () => this.primary.writer().then((sql) => this.loadView(sql))).catch(
      () => {
        // Falls back to the last view.
      },
    );
  }

  /** Calls the listener each time that this node may no longer serve although it is active. */
  onLapse(listener: () => void): void {
    this.#lapseListeners.push(listener);
  }

  /** Returns the fingerprint of the nodes' shared key; undefined before the first one has started. */
  async keyFingerprint(): Promise<string | undefined> {
    const sql = await this.primary.writer();
    const [row] = await sql.unsafe("select value from settings where key = $1", [KEY_NAME]);
    return row?.value;
  }

  /** Opens a read store with separate connections. `refuse` throws the answer to a write. */
  openReads(refuse: () => never): ReadStore {
    this.#reads = new ReadStore(new Primary(this.options.url), refuse, this.listener);
    return this.#reads;
  }

  protected get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Registers the node and starts its heartbeats. */
  protected async begin(sql: ReservedSQL): Promise<void> {
    await this.sendHeartbeat(sql);
    await this.loadView(sql);
    this.logChanges();
    this.scheduleHeartbeat(CHECK_INTERVAL_MS);
  }

  /** Schedules the next heartbeat. */
  protected scheduleHeartbeat(ms: number): void {
    this.#timer?.cancel();
    if (this.hasLeft) return;
    this.#timer = this.options.clock.after(ms, () => {
      this.turn = this.turn.then(() => this.#runBeat()).finally(() => this.scheduleHeartbeat(this.pause));
    });
  }

  /** Runs the work after a pending heartbeat, and then starts the next heartbeat. */
  protected async runSerially(work: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(work);
    await this.turn;
    this.scheduleHeartbeat(0);
  }

  async #runBeat(): Promise<void> {
    if (this.hasLeft) return;
    this.#hasAnswered = false;
    try {
      await this.withWriter((sql) => this.runHeartbeat(sql));
      this.#isSilent = false;
      if (!this.isFollowed) this.logChanges();
    } catch (error) {
      this.#isSilent = !this.#hasAnswered;
      this.logChanges(error);
      this.reconnect();
    }
  }

  /** Reconnects after a failure, possibly to another database. */
  protected reconnect(): void {
    this.primary.dropConnections();
    this.#reads?.reconnect();
    // The store's connections may also hang, and its waiting callers must be answered.
    if (this.isActive && this.serves_ms <= 0) this.store?.stopWaiting();
  }

  /** Abandons the connection without canceling its work, so that a hanging database does not delay the next attempt. */
  protected withWriter<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    const { clock, lease_ms } = this.options;
    const ms = Math.max(1000, lease_ms / 3);
    return withTimeout(clock, ms, () => this.primary.writer(ms).then(work));
  }

  /**
   * Loads the view of the cluster. Comes first in each heartbeat, because it only reads: writes wait for a missing standby, and by then
   * the reason for the wait must be known.
   */
  protected async loadView(sql: ReservedSQL): Promise<ClusterView> {
    this.#view = await loadClusterView(sql);
    this.options.clock.correct?.(this.#view.now);
    this.#hasAnswered = true;
    return this.#view;
  }

  /** Sends a heartbeat, and returns the active node's count of sent notices. */
  protected async sendHeartbeat(sql: ReservedSQL): Promise<SenderHeartbeat | undefined> {
    const { id, version, clock } = this.options;
    const requestedAt = clock.monotonic();
    const sender = await sendHeartbeat(sql, { id, address: id, version });
    this.#writtenAt = requestedAt;
    return sender;
  }

  /** The heartbeat data for renewing the lease. */
  protected get renewal(): Renewal {
    const { id, version, lease_ms, sendsNotices } = this.options;
    return {
      id,
      address: id,
      version,
      epoch: this.epoch,
      lease_ms,
      sent: sendsNotices ? (this.store?.writer.sentNotices ?? 0) : undefined,
    };
  }

  /** Records that the lease was acquired or renewed by a write that began at this time. */
  protected recordLease(requestedAt: number): void {
    this.#writtenAt = requestedAt;
    this.#heldUntil = requestedAt + this.options.lease_ms;
    this.#wasServing = true;
    this.#scheduleLapse();
  }

  #scheduleLapse(): void {
    this.#lapseTimer?.cancel();
    this.#lapseTimer = this.options.clock.after(Math.max(0, this.serves_ms), () => this.#notifyLapse());
  }

  /** Handles a rejected lease: other nodes have taken over. */
  protected onLeaseLost(): void {
    this.#heldUntil = 0;
    this.isFollowed = true;
    this.options.fatal(new CommitError("closed", "another node has taken over"));
  }

  /** Prevents the lapse listeners from being called, because the node ends on purpose. */
  protected cancelLapse(): void {
    this.#lapseTimer?.cancel();
  }

  /** Ends the node. No heartbeat follows. */
  protected async end(): Promise<void> {
    this.hasLeft = true;
    this.#timer?.cancel();
    await this.turn;
    await this.listener.close();
    await this.withWriter((sql) => removeNode(sql, this.id)).catch(() => {
      // After an error, the node stays listed for an hour, which does no harm.
    });
    await this.primary.close();
  }

  /** Logs one line per change. */
  protected logChanges(reason?: unknown): void {
    const now = this.state;
    const { id, epoch } = this;
    const values = { id, epoch, ...(now.holder && { holder: now.holder }), ...(reason ? { reason } : {}) };
    for (const { level, text } of describeChanges(this.#logged, now)) log("cluster")[level](text, values);
    this.#logged = now;
  }

  #notifyLapse(): void {
    if (!this.isActive || !this.#wasServing) return;
    if (this.serves_ms > 0) {
      // A timer may fire a fraction of a millisecond early.
      this.#scheduleLapse();
      return;
    }
    this.#wasServing = false;
    this.logChanges();
    for (const listener of this.#lapseListeners) listener();
  }
}
