// The door to everything that lasts. Actors hand in batches; a batch is on disk, whole, when `commit` resolves.
// Implementations: db/engine/local.ts (SQLite in this process) and, in tests, one that talks to another process.
import type { CommitFigures } from "./pending.ts";
import type { Query, Statement } from "./sql.ts";

/**
 * Why a batch was not acknowledged.
 * `constraint` a UNIQUE or CHECK refused it; `stale` a guarded statement did not touch what it had to; both: nothing was written.
 * `overloaded` the queue is full, `closed` the store is stopping: nothing was written, try later.
 * `unreachable` the database does not answer, or takes no writes now: nothing was written, try later.
 * `moved` another node has the part of the batch: nothing was written, that node is to do it.
 * `full` no space on the disk: nothing was acknowledged.
 * `damaged` the file of the database cannot be read; of reads alone.
 * `unknown` the commit failed or its answer was lost: the batch may or may not be there (PERFORMANCE section 3, rule 5).
 * A statement that SQLite cannot run at all (a mistake of ours) is `unknown` too, and hurts nobody but its own batch.
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
  /** For `constraint`: the columns, such as `api_keys.id`, or for an index over expressions its name, such as `users_username`. */
  readonly constraint: string;
  /** The log has a line about this already, so those who meet it write none. */
  isReported = false;

  constructor(reason: Refusal, message: string, options: { constraint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.constraint = options.constraint ?? "";
  }
}

/** Another node has the part: nothing was written. */
export const isMoved = (error: unknown): boolean => error instanceof CommitError && error.reason === "moved";

/** Names of the sequences whose numbers callers can see. */
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

/** What keeps a database from its work. */
export type Trouble = {
  readonly kind: "damaged" | "full";
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Which tables are damaged, once the database was looked through. */
  readonly tables?: readonly string[];
};

export interface Store {
  readonly trouble?: Trouble | undefined;
  /** Raised at every start; each group commit checks that it is still the newest (PERFORMANCE section 3, rule 12). */
  readonly epoch: number;
  /** Its writer's figures, where it has a writer of its own. */
  readonly writer?: CommitFigures;
  /**
   * Raised before `commit` resolves, for each batch that touches what lists of workspaces show (`Statement.touches`); what was read at a version is right
   * while it lasts. Undefined where writes of others would not be seen.
   */
  readonly shownVersion?: number;
  /** The same for what decides which workspaces a list has, and in which order: what agents of one have written leaves it alone. */
  readonly listedVersion?: number;
  /** The same for what decides who a caller is: keys, users and memberships. */
  readonly callersVersion?: number;
  /** Where others write, too: until this resolves `callersVersion` is not that of everything which was committed before the call. */
  askCallers?(): Promise<void>;
  /** The same for the audit log. */
  readonly auditVersion?: number;
  /** The same for what is shown of one workspace; what only agents of others have written leaves it alone. */
  versionOf?(workspace_id: string): number | undefined;
  /** The same of several, in their order, where they have to be asked for. */
  versionsOf?(workspace_ids: readonly string[]): Promise<readonly (string | undefined)[]>;
  /**
   * Writes all statements or none, and resolves when they are flushed to disk. Throws `CommitError`. An empty batch resolves at once.
   * `about`: the workspace to which all rows of agents in it belong, where that is known (for `versionOf`). `part`: of which part it is
   * (src/base/parts.ts), where it is of one: a node that does not have the part writes nothing of it. What names none is of the part of the request
   * that is answered (src/base/network/request-part.ts).
   */
  commit(batch: readonly Statement[], about?: string, part?: number): Promise<void>;
  /** Tells the other nodes of a cluster of this event of a topic, soon. */
  tell?(kind: string, id: string, event: object): void;
  /** From now on hears what other nodes tell; `tell` is called without words where some may have been missed. */
  hear?(tell: (words: readonly { kind: string; id: string; event: object }[] | undefined) => void): void;
  /** The first row, read fresh on the main thread. Only for lookups by key (under 50 microseconds). */
  get<T>(query: Query<T>): Promise<T | undefined>;
  /** A handful of rows by key, read fresh on the main thread. */
  all<T>(query: Query<T>): Promise<T[]>;
  /** Lists, searches and reports: read on a reader Worker, bounded in rows and time. */
  scan<T>(query: Query<T>): Promise<T[]>;
  /** The first of `count` consecutive numbers that nobody has had or will have, also after a crash. Gaps are possible. */
  reserve(sequence: SequenceName, count: number): Promise<number>;
  /** Finishes what was submitted, then closes. Later calls are refused as `closed`. */
  close(): Promise<void>;
}
