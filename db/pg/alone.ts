// The locks under which a group is written whose guards look at rows that another node may be writing. Pure.
import { ALONE, type Alone } from "../engine/alone.ts";
import type { Pending } from "../engine/pending.ts";
import type { Sent } from "./bind.ts";

/** Alongside the number of a name: these locks are no one else's. */
const SPACE = 18;

/**
 * Sent before all statements of the group, so that each of them sees what the node before has committed; undefined where none of them is written
 * alone. In the order of the names: two groups never wait for each other. The database releases them with the end of the transaction.
 */
export const makeLocks = (group: readonly Pending[]): Sent | undefined => {
  const names = new Set<Alone>();
  for (const { batch } of group) for (const { alone } of batch) if (alone !== undefined) names.add(alone);
  if (names.size === 0) return undefined;
  const locks = ALONE.flatMap((name, at) => (names.has(name) ? [`pg_advisory_xact_lock(${SPACE}, ${at})`] : []));
  return { text: `select ${locks.join(", ")}`, params: [] };
};
