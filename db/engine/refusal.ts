// What SQLite's answer means to the writer: a reason for the caller, whether it hurts the batch alone or its whole group, and
// whether the process may go on (RELIABILITY section 2).
import { CommitError } from "./store.ts";

const getCode = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? "");

/** The disk cannot be trusted any more: what is in the page cache and what is on the disk may differ. */
export const isDistrusted = (error: unknown): boolean =>
  /^SQLITE_IOERR_(FSYNC|DIR_FSYNC|TRUNCATE)|^SQLITE_(CORRUPT|NOTADB)/.test(getCode(error));

/** A read or write that the disk refused; one may be an accident, the second is not. */
export const isDiskError = (error: unknown): boolean => getCode(error).startsWith("SQLITE_IOERR");

/** The transaction as a whole is lost, not only the batch whose statement met the error. */
export const endsGroup = (error: unknown): boolean =>
  /^SQLITE_(FULL|IOERR|NOMEM|BUSY|INTERRUPT|CORRUPT|NOTADB|READONLY|CANTOPEN|PROTOCOL)/.test(getCode(error));

/** What SQLite said, as one of our reasons. */
export const toCommitError = (error: unknown): CommitError => {
  const code = getCode(error);
  const text = error instanceof Error ? error.message : String(error);
  if (code.startsWith("SQLITE_CONSTRAINT")) {
    const what = /constraint failed: (.*)$/s.exec(text)?.[1] ?? "";
    const constraint = what.replace(/^index '(.*)'$/s, "$1");
    return new CommitError("constraint", "a rule of the database refused the change", { constraint, cause: error });
  }
  if (code.startsWith("SQLITE_FULL")) return new CommitError("full", "the disk is full", { cause: error });
  // Only `begin immediate` waits for a lock, so nothing was written.
  if (code.startsWith("SQLITE_BUSY")) {
    return new CommitError("overloaded", "another program holds the database", { cause: error });
  }
  return new CommitError("unknown", "the write could not be confirmed", { cause: error });
};
