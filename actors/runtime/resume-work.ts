// Resumes open work item by item: after a server start, and when shards arrive from another node.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";

/** Thrown when some items failed but may succeed later. The failures were logged. */
export class ResumeIncompleteError extends Error {
  override readonly name = "ResumeIncompleteError";
}

/**
 * Resumes each item. A failed one is logged and does not block the others. Throws `ResumeIncompleteError` at the end if some may succeed later, so
 * that work from another node is not lost while the database is unavailable.
 */
export const resumeAll = async <T>(
  items: readonly T[],
  formatName: (item: T) => string,
  resume: (item: T) => Promise<unknown>,
): Promise<void> => {
  let canRetry = false;
  for (const item of items) {
    try {
      await resume(item);
    } catch (error) {
      canRetry ||= isTemporary(error);
      log("recovery").error("cannot resume {name}: {error}", { name: formatName(item), error });
    }
  }
  if (canRetry) throw new ResumeIncompleteError("some open work could not be resumed");
};

const TEMPORARY_REASONS: ReadonlySet<string> = new Set(["overloaded", "unreachable", "moved", "unknown"]);

const isTemporary = (error: unknown): boolean =>
  (error instanceof CommitError && TEMPORARY_REASONS.has(error.reason)) ||
  (error instanceof AppError && error.kind === "overloaded");
