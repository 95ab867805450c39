// Resumes open work item by item: after a server start, and when shards arrive from another node.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";

/** Some items failed, and were logged, but may succeed later. */
export class ResumeIncompleteError extends Error {
  override readonly name = "ResumeIncompleteError";
}

/**
 * Resumes each item. A failed one is logged and does not block the others. Throws `ResumeIncompleteError` at the end if some may succeed later, so
 * that work from another node is not lost while the database is unavailable.
 */
export const resumeAll = async <T>(
  all: readonly T[],
  name: (one: T) => string,
  take: (one: T) => Promise<unknown>,
): Promise<void> => {
  let isLater = false;
  for (const one of all) {
    try {
      await take(one);
    } catch (error) {
      isLater ||= isTemporary(error);
      log("recovery").error("cannot resume {name}: {error}", { name: name(one), error });
    }
  }
  if (isLater) throw new ResumeIncompleteError("some open work could not be resumed");
};

const TEMPORARY_REASONS: ReadonlySet<string> = new Set(["overloaded", "unreachable", "moved", "unknown"]);

const isTemporary = (error: unknown): boolean =>
  (error instanceof CommitError && TEMPORARY_REASONS.has(error.reason)) ||
  (error instanceof AppError && error.kind === "overloaded");
