// What was open continues, one after the other: after a start of the server, and when parts come from another node.
import { AppError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { CommitError } from "#db/engine/store.ts";

/** Some of it may be taken up when that is tried again: each has been logged. */
export class NotAllTakenUp extends Error {
  override readonly name = "NotAllTakenUp";
}

/**
 * Takes up each. One that cannot be is logged, and holds up no other. Throws `NotAllTakenUp` in the end where some may be taken up when it
 * is called again: what has come from another node must not be forgotten because the database was away for a moment.
 */
export const takeUp = async <T>(
  all: readonly T[],
  name: (one: T) => string,
  take: (one: T) => Promise<unknown>,
): Promise<void> => {
  let isLater = false;
  for (const one of all) {
    try {
      await take(one);
    } catch (error) {
      isLater ||= mayComeLater(error);
      log("recovery").error("{name} cannot be taken up again: {error}", { name: name(one), error });
    }
  }
  if (isLater) throw new NotAllTakenUp("not everything that was open could be taken up");
};

const LATER: ReadonlySet<string> = new Set(["overloaded", "unreachable", "moved", "unknown"]);

const mayComeLater = (error: unknown): boolean =>
  (error instanceof CommitError && LATER.has(error.reason)) ||
  (error instanceof AppError && error.kind === "overloaded");
