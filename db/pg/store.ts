// The store on PostgreSQL: one group-committing writer and a few readers. Reads go to the primary, so they see every commit that resolved.
import { getCurrentRequest, runOutsideRequest } from "#base/network/current-request.ts";
import { FIRST_SHARD } from "#base/shards.ts";
import { Sequences } from "../engine/sequences.ts";
import type { Statement } from "../engine/sql.ts";
import { CommitError, type CommitOptions, type SequenceName, type Store } from "../engine/store.ts";
import { Versions } from "../engine/versions.ts";
import { checkDatabase } from "./checks.ts";
import { migratePostgres } from "./migrate.ts";
import { KnownVersions } from "./notices/known-versions.ts";
import type { Listener } from "./notices/listener.ts";
import type { BroadcastEvent, Notice } from "./notices/notice.ts";
import { Primary } from "./primary.ts";
import { PgReads } from "./reads.ts";
import { inTransaction, makeGuard, takeAllShards } from "./shards/guard.ts";
import { makeShardsGuard } from "./shards/moves.ts";
import { PgWriter } from "./writer.ts";

export type PgStoreOptions = {
  /** postgres://user:password@host:port[,host:port...]/database. Contains a password: never log it. */
  url: string;
  /** Milliseconds since 1970, for the table of migrations. */
  now: number;
  queueBytes?: number;
  /** How long writes and reads wait for the database; default 15 s. */
  wait_ms?: number;
  /** Whether to send notices of changes to other nodes. */
  sendsNotices?: boolean;
  /** Called when another node has taken over: the process must exit. */
  fatal(error: Error): void;
};

/** Whether other nodes write at the same time. Each batch then needs its shard, and their writes are known only through `listener`. */
type SharedOptions = { isShared?: boolean; listener?: Listener };

/** Returns whether definitely nothing was written, which other errors leave open. */
const wasNotWritten = (error: unknown): boolean => error instanceof CommitError && error.reason !== "unknown";

/** Owns the shards when the store is not used by a cluster. */
const UNCLUSTERED = "";

/** Connects, checks and migrates the database, and increments its epoch. Throws UnsafeDatabaseError, DatabaseVersionError, CommitError. */
export const openPgStore = async (options: PgStoreOptions): Promise<PgStore> => {
  const { url, wait_ms } = options;
  const primary = new Primary(url, { inOrder: true, ...(wait_ms === undefined ? {} : { wait_ms }) });
  try {
    const connection = await primary.writer();
    await checkDatabase(connection);
    await migratePostgres(connection, options);
    const epoch = await inTransaction(connection, () => takeAllShards(connection, UNCLUSTERED));
    return new PgStore(primary, UNCLUSTERED, epoch, options);
  } catch (error) {
    await primary.close();
    throw error;
  }
};

export class PgStore extends PgReads implements Store {
  readonly epoch: number;
  readonly writer: PgWriter;
  readonly #sequences: Sequences;
  readonly #versions = new Versions();
  /** With several writing nodes: what is known about their writes and this node's. */
  readonly #knownVersions: KnownVersions | undefined;
  readonly #listener: Listener | undefined;
  /** Unsubscribes from other nodes. */
  #unsubscribe: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    primary: Primary,
    node: string,
    epoch: number,
    {
      fatal,
      queueBytes,
      wait_ms,
      sendsNotices,
      isShared = false,
      listener,
    }: Pick<PgStoreOptions, "fatal" | "queueBytes" | "wait_ms" | "sendsNotices"> & SharedOptions,
  ) {
    super(primary, wait_ms);
    this.epoch = epoch;
    this.#listener = listener;
    if (isShared) this.#knownVersions = new KnownVersions({ connection: () => primary.readers(), lost: () => {} });
    this.writer = new PgWriter({
      primary,
      fatal,
      queueBytes,
      wait_ms,
      noticeSender: sendsNotices ? { node, epoch } : undefined,
      guard: (isShared ? makeShardsGuard : makeGuard)(node, epoch),
    });
    this.#sequences = new Sequences({
      get: (query) => this.get(query),
      // Reserved numbers may serve several requests.
      commit: (batch) => runOutsideRequest(() => this.commit(batch)),
    });
  }

  get shownVersion(): number | undefined {
    return this.#knownVersions ? undefined : this.#versions.shown;
  }

  get listedVersion(): number | undefined {
    return this.#knownVersions ? undefined : this.#versions.listed;
  }

  get callersVersion(): number | undefined {
    return this.#knownVersions ? this.#knownVersions.callers : this.#versions.callers;
  }

  getVersion(workspace_id: string): number | undefined {
    return this.#knownVersions ? undefined : this.#versions.getVersion(workspace_id);
  }

  async refreshCallersVersion(): Promise<void> {
    await this.#knownVersions?.refresh();
  }

  commit(batch: readonly Statement[], { about, of }: CommitOptions = {}): Promise<void> {
    const request = getCurrentRequest();
    const shard = of === "deployment" ? FIRST_SHARD : (of ?? request?.part);
    const work = this.#versions.withIncrement(batch, about, () => this.writer.submit(batch, shard, about));
    return request?.trackChange(work, wasNotWritten) ?? work;
  }

  broadcast(kind: string, id: string, event: object): void {
    this.writer.broadcast({ kind, id, event });
  }

  onBroadcast(onEvents: (events: readonly BroadcastEvent[] | undefined) => void): void {
    this.#unsubscribe = this.#listener?.subscribe(({ epoch, words: events = [], all }: Notice) => {
      if (all) onEvents(undefined);
      else if (epoch !== this.epoch && events.length > 0) onEvents(events);
    });
  }

  async reserve(sequence: SequenceName, count: number): Promise<number> {
    if (this.#closing) throw new CommitError("closed", "the store is closing");
    return this.#sequences.reserve(sequence, count);
  }

  /** Stops waiting for the database: unsent batches are rejected and never written; the result of a sent group is unknown. */
  stopWaiting(): void {
    this.writer.stopWaiting();
    this.primary.abandon();
  }

  /** Makes later numbers exceed those of all other nodes. Called before this node continues another node's actors. */
  discardNumbers(): void {
    this.#sequences.discardBlocks();
  }

  close(): Promise<void> {
    this.#closing ??= this.writer
      .stop()
      .then(() => this.#unsubscribe?.())
      .then(() => this.primary.close());
    this.endReads();
    return this.#closing;
  }
}
