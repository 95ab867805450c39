// The locks for groups whose guards read rows that another node may be writing. Pure.
import { ALONE, type Alone } from "../engine/cross-row-guards.ts";
import type { Pending } from "../engine/pending.ts";
import type { BoundText } from "./bind.ts";

/** The first key of these advisory locks; the second is the number of the name. Not used by other locks. */
const LOCK_SPACE = 18;

/**
 * Returns the statement that takes the locks before all statements of the group, so that these see the commits of the previous node;
 * undefined when no statement needs a lock. The locks are taken in the order of the names, so that groups cannot deadlock. The database
 * releases them at the end of the transaction.
 */
export const toLockStatement = (group: readonly Pending[]): BoundText | undefined => {
  const names = new Set<Alone>();
  for (const { batch } of group) for (const { alone } of batch) if (alone !== undefined) names.add(alone);
  if (names.size === 0) return undefined;
  const locks = ALONE.flatMap((name, index) =>
    names.has(name) ? [`pg_advisory_xact_lock(${LOCK_SPACE}, ${index})`] : [],
  );
  return { text: `select ${locks.join(", ")}`, params: [] };
};
