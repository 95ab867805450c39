// This process as one node of a cluster, whatever it does in it: it is alive for the others, sees who else is, and knows by its own monotonic clock
// until when it may serve. One connection of its own, so that no group of commits keeps a renewal waiting.
import type { ReservedSQL } from "bun";
import type { Clock, Timer } from "#base/clock.ts";
import { log } from "#base/log.ts";
import { KEY_NAME } from "../engine/sealed.ts";
import { CommitError } from "../engine/store.ts";
import { checkDatabase } from "./checks.ts";
import { type ClusterView, forgetNode, type Renewal, showNode, viewCluster } from "./lease.ts";
import { migratePostgres } from "./migrate.ts";
import { describeChanges, type SeenState } from "./node-state.ts";
import { Primary } from "./primary.ts";
import { ReadStore } from "./read-store.ts";
import type { PgStore } from "./store.ts";
import { Listener } from "./told/listener.ts";
import type { Teller } from "./told/tellers.ts";

/** A node stops serving so long before its lease ends: what it has sent by then is older than what the next node does. */
const MARGIN_MS = 1000;
/** How long a node that is about to end looks whether there is another one. */
const LOOK_ANEW_MS = 500;
/** How often a node looks at what the others do. */
export const LOOK_MS = 250;
/** A node reads from a database that has taken a write of it so long ago; an old primary, alongside a new one, takes none. */
const CURRENT_MS = 1000;

export type NodeRole = "active" | "spare";

export type NodeOptions = {
  /** postgres://user:password@host:port[,host:port...]/database. Holds a password: never logged. */
  readonly url: string;
  readonly id: string;
  readonly version: string;
  readonly lease_ms: number;
  /** Whether the others are notified of what they answer reads and streams by. */
  readonly tells?: boolean;
  /** `correct`: told of the database's time with each beat; milliseconds since 1970. */
  readonly clock: Clock & { correct?(database_now: number): void };
  /** Another node has taken over: the process must stop. */
  fatal(error: Error): void;
};

/** Connects, checks the database and migrates it. Throws UnsafeDatabaseError, DatabaseVersionError, CommitError. */
export const connected = async <T>(
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

/** What does not come in so many milliseconds fails. */
export const soon = async <T>(clock: Clock, ms: number, work: () => Promise<T>): Promise<T> => {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = clock.after(ms, () => reject(new Error("no answer in time")));
  try {
    return await Promise.race([work(), late]);
  } finally {
    timer.cancel();
  }
};

export abstract class LivingNode {
  readonly id: string;
  protected readonly options: NodeOptions;
  protected readonly primary: Primary;
  /** What the nodes tell each other, for both of its stores. */
  protected readonly listener: Listener;
  /** What it writes with, once it was opened. */
  protected store: PgStore | undefined;
  /** Others have taken over from this node, which ends. */
  protected isFollowed = false;
  protected hasLeft = false;
  /** Its beats and what must not meet them, one after the other. */
  protected turn: Promise<void> = Promise.resolve();
  #view: ClusterView | undefined;
  #reads: ReadStore | undefined;
  /** By the monotonic clock. */
  #held_until = 0;
  #timer: Timer | undefined;
  #lapse: Timer | undefined;
  /** When the last write began that was done, by the monotonic clock. */
  #written_at = Number.NEGATIVE_INFINITY;
  #wasServing = false;
  /** The database did not answer when it was asked last. */
  #isSilent = false;
  #hasAnswered = false;
  /** What stands in the log. */
  #logged: SeenState | undefined;
  readonly #onLapse: (() => void)[] = [];

  protected constructor(options: NodeOptions, primary: Primary) {
    this.id = options.id;
    this.options = options;
    this.primary = primary;
    this.listener = new Listener({ primary, clock: options.clock });
  }

  abstract get epoch(): number;
  abstract get state(): SeenState;
  abstract get role(): NodeRole;
  /** Milliseconds between two beats. */
  protected abstract get pause(): number;
  /** What it does again and again. What it throws says that the database did not do it. */
  protected abstract beat(sql: ReservedSQL): Promise<void>;

  /** What was seen of the cluster last. */
  get view(): ClusterView | undefined {
    return this.#view;
  }

  /** Whether it has a lease, be it lapsed. */
  protected get isActive(): boolean {
    return this.role === "active";
  }

  /** Milliseconds for which this node may still serve; 0 or less: it may not. */
  get serves_ms(): number {
    return this.isActive ? this.#held_until - MARGIN_MS - this.options.clock.monotonic() : 0;
  }

  /** Whether what the database says now is what it has acknowledged: it takes writes of this node. */
  get isCurrent(): boolean {
    return this.options.clock.monotonic() - this.#written_at < CURRENT_MS;
  }

  /** Looks who lives now, for a moment at most: who has just come may not have been seen yet. */
  async lookAnew(): Promise<void> {
    const { clock } = this.options;
    await soon(clock, LOOK_ANEW_MS, () => this.primary.writer().then((sql) => this.see(sql))).catch(() => {
      // What was seen last counts.
    });
  }

  /** Called each time this node may no longer serve, though it was active. */
  onLapse(listener: () => void): void {
    this.#onLapse.push(listener);
  }

  /** The fingerprint of the key that the nodes share; undefined before the first one has started. */
  async keyFingerprint(): Promise<string | undefined> {
    const sql = await this.primary.writer();
    const [row] = await sql.unsafe("select value from settings where key = $1", [KEY_NAME]);
    return row?.value;
  }

  /** What a node reads with, on connections of its own. `refuse` throws what a write is answered with. */
  openReads(refuse: () => never): ReadStore {
    this.#reads = new ReadStore(new Primary(this.options.url), refuse, this.listener);
    return this.#reads;
  }

  protected get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Makes the node known, and begins its beats. */
  protected async begin(sql: ReservedSQL): Promise<void> {
    await this.show(sql);
    await this.see(sql);
    this.logChanges();
    this.plan(LOOK_MS);
  }

  /** The next beat is in so many milliseconds. */
  protected plan(ms: number): void {
    this.#timer?.cancel();
    if (this.hasLeft) return;
    this.#timer = this.options.clock.after(ms, () => {
      this.turn = this.turn.then(() => this.#beat()).finally(() => this.plan(this.pause));
    });
  }

  /** Does this behind a renewal that is under way, and looks again. */
  protected async inTurn(work: () => Promise<void>): Promise<void> {
    this.turn = this.turn.then(work);
    await this.turn;
    this.plan(0);
  }

  async #beat(): Promise<void> {
    if (this.hasLeft) return;
    this.#hasAnswered = false;
    try {
      await this.within((sql) => this.beat(sql));
      this.#isSilent = false;
      if (!this.isFollowed) this.logChanges();
    } catch (error) {
      this.#isSilent = !this.#hasAnswered;
      this.logChanges(error);
      this.reconnect();
    }
  }

  /** After a failure another database may have to be found. */
  protected reconnect(): void {
    this.primary.lost();
    this.#reads?.reconnect();
    // Its connections hang in the same way, and anyone who waits there is to be answered.
    if (this.isActive && this.serves_ms <= 0) this.store?.giveUp();
  }

  /** A database that hangs must not keep the next try waiting: the connection is given up, nothing is cancelled. */
  protected within<T>(work: (sql: ReservedSQL) => Promise<T>): Promise<T> {
    const { clock, lease_ms } = this.options;
    const ms = Math.max(1000, lease_ms / 3);
    return soon(clock, ms, () => this.primary.writer(ms).then(work));
  }

  /** Looks who lives. The first of a beat, since it only reads: what is written waits for a standby that is away, and then it has to be known why. */
  protected async see(sql: ReservedSQL): Promise<ClusterView> {
    this.#view = await viewCluster(sql);
    this.options.clock.correct?.(this.#view.now);
    this.#hasAnswered = true;
    return this.#view;
  }

  /** Tells the others that it is alive; answers what the one that is active has told. */
  protected async show(sql: ReservedSQL): Promise<Teller | undefined> {
    const { id, version, clock } = this.options;
    const asked_at = clock.monotonic();
    const teller = await showNode(sql, { id, address: id, version });
    this.#written_at = asked_at;
    return teller;
  }

  /** By what it renews its lease. */
  protected get renewal(): Renewal {
    const { id, version, lease_ms, tells } = this.options;
    return {
      id,
      address: id,
      version,
      epoch: this.epoch,
      lease_ms,
      told: tells ? (this.store?.writer.told ?? 0) : undefined,
    };
  }

  /** Its lease was taken or renewed by a write that began then. */
  protected hold(asked_at: number): void {
    this.#written_at = asked_at;
    this.#held_until = asked_at + this.options.lease_ms;
    this.#wasServing = true;
    this.#planLapse();
  }

  #planLapse(): void {
    this.#lapse?.cancel();
    this.#lapse = this.options.clock.after(Math.max(0, this.serves_ms), () => this.#noteLapse());
  }

  /** Its lease was refused: others have what it had. */
  protected follow(): void {
    this.#held_until = 0;
    this.isFollowed = true;
    this.options.fatal(new CommitError("closed", "another node has taken over"));
  }

  /** Its end is meant: nobody is told that it lapses. */
  protected endLapse(): void {
    this.#lapse?.cancel();
  }

  /** The last thing: no beat comes any more. `leave`: what it does in the database before it is forgotten there. */
  protected async end(): Promise<void> {
    this.hasLeft = true;
    this.#timer?.cancel();
    await this.turn;
    await this.listener.close();
    await this.within((sql) => forgetNode(sql, this.id)).catch(() => {
      // It is shown for an hour, and nothing more.
    });
    await this.primary.close();
  }

  /** A line of the log for each thing that has changed. */
  protected logChanges(reason?: unknown): void {
    const now = this.state;
    const { id, epoch } = this;
    const values = { id, epoch, ...(now.holder && { holder: now.holder }), ...(reason ? { reason } : {}) };
    for (const { level, text } of describeChanges(this.#logged, now)) log("cluster")[level](text, values);
    this.#logged = now;
  }

  #noteLapse(): void {
    if (!this.isActive || !this.#wasServing) return;
    if (this.serves_ms > 0) {
      // A timer may come a part of a millisecond too early.
      this.#planLapse();
      return;
    }
    this.#wasServing = false;
    this.logChanges();
    for (const listener of this.#onLapse) listener();
  }
}
