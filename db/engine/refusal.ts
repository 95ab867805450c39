// Interprets SQLite's errors for the writer: the reason for the caller, whether only the batch or its whole group failed, and whether the
// process may continue (RELIABILITY section 2).
import { CommitError } from "./store.ts";

const getCode = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? "");

/** Returns whether the data on disk cannot be trusted any more, because the page cache and the disk may differ. */
export const isIntegrityError = (error: unknown): boolean =>
  /^SQLITE_IOERR_(FSYNC|DIR_FSYNC|TRUNCATE)|^SQLITE_(CORRUPT|NOTADB)/.test(getCode(error));

/** Returns whether the disk rejected a read or write. A single error may be temporary; repeated errors are not. */
export const isDiskError = (error: unknown): boolean => getCode(error).startsWith("SQLITE_IOERR");

/** Returns whether the whole transaction is lost, not just the failed batch. */
export const failsWholeGroup = (error: unknown): boolean =>
  /^SQLITE_(FULL|IOERR|NOMEM|BUSY|INTERRUPT|CORRUPT|NOTADB|READONLY|CANTOPEN|PROTOCOL)/.test(getCode(error));

/** Converts SQLite's error to a reason. */
export const toCommitError = (error: unknown): CommitError => {
  const code = getCode(error);
  const message = error instanceof Error ? error.message : String(error);
  if (code.startsWith("SQLITE_CONSTRAINT")) {
    const failed = /constraint failed: (.*)$/s.exec(message)?.[1] ?? "";
    const constraint = failed.replace(/^index '(.*)'$/s, "$1");
    return new CommitError("constraint", "a rule of the database refused the change", { constraint, cause: error });
  }
  if (code.startsWith("SQLITE_FULL")) return new CommitError("full", "the disk is full", { cause: error });
  // Only `begin immediate` waits for a lock, so nothing was written.
  if (code.startsWith("SQLITE_BUSY")) {
    return new CommitError("overloaded", "another program holds the database", { cause: error });
  }
  return new CommitError("unknown", "the write could not be confirmed", { cause: error });
};
