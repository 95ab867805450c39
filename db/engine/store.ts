// The interface to persistent data. Actors commit batches; a batch is completely on disk when `commit` resolves. Implementations:
// db/engine/local.ts (SQLite in this process), db/pg/store.ts (PostgreSQL), and one in tests that connects to another process.
import type { CommitFigures } from "./pending.ts";
import type { Query, Statement } from "./sql.ts";

/**
 * Why a batch was not acknowledged:
 * - `constraint`: a UNIQUE or CHECK constraint failed. Nothing was written.
 * - `stale`: a guarded statement did not change the expected rows. Nothing was written.
 * - `overloaded`: the queue is full. Nothing was written; try later.
 * - `closed`: the store is stopping. Nothing was written; try later.
 * - `unreachable`: the database does not answer, or is read-only now. Nothing was written; try later.
 * - `moved`: another node has the batch's shard and must write it. Nothing was written.
 * - `full`: no space on the disk. Nothing was acknowledged.
 * - `damaged`: the database file is unreadable; for reads only.
 * - `unknown`: the commit failed or its answer was lost, so the batch may or may not be stored. Also for a
 *   statement that SQLite cannot run at all (a bug in this program), which affects only its own batch.
 */
export type Refusal =
  | "constraint"
  | "stale"
  | "overloaded"
  | "unreachable"
  | "moved"
  | "closed"
  | "full"
  | "damaged"
  | "unknown";

export class CommitError extends Error {
  override readonly name = "CommitError";
  readonly reason: Refusal;
  /** For `constraint`: the columns, such as `api_keys.id`, or the name of an index over expressions, such as `users_username`. */
  readonly constraint: string;
  /** The error has been logged already, so callers do not log it again. */
  isReported = false;

  constructor(reason: Refusal, message: string, options: { constraint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.constraint = options.constraint ?? "";
  }
}

/** Returns whether another node has the shard, so that nothing was written. */
export const isMoved = (error: unknown): boolean => error instanceof CommitError && error.reason === "moved";

/** Sequences whose numbers callers can see. */
export type SequenceName =
  | "agents"
  | "log_sources"
  | "agent_logs"
  | "jobs"
  | "job_logs"
  | "chats"
  | "messages"
  | "queued_messages"
  | "chat_runs";

/** A problem that prevents a database from working. */
export type Trouble = {
  readonly kind: "damaged" | "full";
  /** Milliseconds since 1970. */
  readonly since: number;
  /** The damaged tables, once the database was checked. */
  readonly tables?: readonly string[];
};

export type CommitOptions = {
  /** The workspace to which all agent rows in the batch belong, if known (for `getVersion`). */
  readonly about?: string | undefined;
  /**
   * The owner of the rows, by the `part` stored with them; "deployment" for rows that exist once. Nothing is written if another node owns
   * them (src/base/shards.ts). Default: the rows of the current request (src/base/network/current-request.ts).
   */
  readonly of?: number | "deployment" | undefined;
};

export interface Store {
  readonly trouble?: Trouble | undefined;
  /** Incremented at every start. Each commit group checks that this epoch is still the newest. */
  readonly epoch: number;
  /** Metrics of the store's writer, if it has one. */
  readonly writer?: CommitFigures;
  /**
   * Incremented before `commit` resolves, for each batch that changes data in lists of workspaces (`Statement.touches`). Data that was
   * read at a version is valid while the version is unchanged. Undefined if the store does not know about writes of other processes.
   */
  readonly shownVersion?: number;
  /** Like `shownVersion`, for the selection and order of workspaces in a list. Writes of one workspace's agents do not change it. */
  readonly listedVersion?: number;
  /** Like `shownVersion`, for the identity of callers: keys, users and memberships. */
  readonly callersVersion?: number;
  /** With several writers: resolves when `callersVersion` covers everything committed before the call. */
  refreshCallersVersion?(): Promise<void>;
  /** Like `shownVersion`, for the audit log. */
  readonly auditVersion?: number;
  /** Like `shownVersion`, for one workspace. Writes of other workspaces' agents do not change it. */
  getVersion?(workspace_id: string): number | undefined;
  /** Like `getVersion`, for several workspaces, in order. Only in stores that must ask the database for versions. */
  loadVersions?(workspace_ids: readonly string[]): Promise<readonly (string | undefined)[]>;
  /**
   * Writes all statements or none, and resolves when they are flushed to disk. Throws `CommitError`. An empty batch resolves immediately.
   */
  commit(batch: readonly Statement[], options?: CommitOptions): Promise<void>;
  /** Sends this event of a topic to the other nodes of a cluster, without waiting. */
  broadcast?(kind: string, id: string, event: object): void;
  /** Subscribes to events of other nodes. `onEvents` is called without events when some may have been missed. */
  onBroadcast?(onEvents: (events: readonly { kind: string; id: string; event: object }[] | undefined) => void): void;
  /** Returns the first row, read fresh on the main thread. Only for lookups by key (under 50 microseconds). */
  get<T>(query: Query<T>): Promise<T | undefined>;
  /** Returns a few rows by key, read fresh on the main thread. */
  all<T>(query: Query<T>): Promise<T[]>;
  /** Runs lists, searches and reports on a reader Worker, limited in rows and time. */
  scan<T>(query: Query<T>): Promise<T[]>;
  /** Returns the first of `count` consecutive numbers that are never used again, even after a crash. Gaps are possible. */
  reserve(sequence: SequenceName, count: number): Promise<number>;
  /** Finishes submitted batches, then closes. Later calls are rejected as `closed`. */
  close(): Promise<void>;
}
