// Interprets PostgreSQL's errors for the writer (the counterpart of db/engine/refusal.ts for SQLite).
import { CommitError } from "../engine/store.ts";

type PostgresError = {
  readonly errno?: unknown;
  readonly code?: unknown;
  readonly constraint?: string;
  readonly table?: string;
  readonly detail?: string;
  readonly message?: string;
};

/** Returns the five characters of SQLSTATE; empty for other errors. */
export const getSqlState = (error: unknown): string => {
  const { errno, code } = (error ?? {}) as PostgresError;
  return [errno, code].map(String).find((value) => /^[0-9A-Z]{5}$/.test(value)) ?? "";
};

/** `idle_in_transaction_session_timeout`: the database rolled back a stalled transaction and closed its connection. Nothing was written. */
const IDLE_TRANSACTION_TIMEOUT = "25P03";

/**
 * Returns whether the same group may succeed when it is sent again: after a deadlock, a serialization conflict, or a stall of this process.
 */
export const isWorthRepeating = (error: unknown): boolean =>
  /^40(001|P01)$/.test(getSqlState(error)) || getSqlState(error) === IDLE_TRANSACTION_TIMEOUT;

/**
 * Returns whether PostgreSQL rejected this statement and the connection remains usable. After any other error the connection is broken, and
 * it is unknown whether a COMMIT on it took effect.
 */
export const isAnswer = (error: unknown): boolean => {
  const state = getSqlState(error);
  // Class 57: the server is shutting down or has ended this connection.
  return state !== "" && state !== IDLE_TRANSACTION_TIMEOUT && !/^(08|57)/.test(state);
};

/** Returns the shards that belong to another node, from the error of a guard. */
export const parseLostShards = (error: unknown): number[] => {
  const { detail = "" } = (error ?? {}) as PostgresError;
  return getSqlState(error) === "SW003" ? detail.split(",").map(Number) : [];
};

/** Converts a PostgreSQL error to a CommitError. */
export const toCommitError = (error: unknown): CommitError => {
  if (error instanceof CommitError) return error;
  const state = getSqlState(error);
  const { message = String(error) } = (error ?? {}) as PostgresError;
  if (state === "SW001") return new CommitError("stale", "the row has changed in the meantime", { cause: error });
  if (state === "SW002") return new CommitError("closed", "another node has taken over", { cause: error });
  if (state === "SW003") return new CommitError("moved", "another node does this now", { cause: error });
  if (state.startsWith("23")) {
    const constraint = toConstraintName(error as PostgresError);
    return new CommitError("constraint", "a rule of the database refused the change", { constraint, cause: error });
  }
  if (state === "53100") return new CommitError("full", "the disk of the database is full", { cause: error });
  if (state.startsWith("53") || state === "25006" || state === "57P03") {
    return new CommitError("unreachable", `the database takes no writes now: ${message}`, { cause: error });
  }
  return new CommitError("unknown", "the write could not be confirmed", { cause: error });
};

/** Returns the constraint as SQLite names it: by its columns, or by the index name for an index over expressions. */
const toConstraintName = ({ constraint = "", table, detail = "" }: PostgresError): string => {
  const columns = /^Key \((\w+(?:, \w+)*)\)=/.exec(detail)?.[1];
  return columns && table && /_(pkey|key|unique)$/.test(constraint)
    ? columns
        .split(", ")
        .map((column) => `${table}.${column}`)
        .join(", ")
    : constraint;
};
