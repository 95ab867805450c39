// How much somebody may spend on models, and how much they have: the own limit, else the lowest of their groups, else everybody's
// (rule SP-5).
import type { Clock } from "#base/clock.ts";
import { sumCost } from "#db/chats/spend.ts";
import { readGroupLimit, readUsageLimit, readUserLimit } from "#db/chats/usage-limits.ts";
import type { Store } from "#db/engine/store.ts";
import { readMemberships } from "#db/users/members.ts";
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";
import { periodAt } from "./period.ts";

type Deps = { readonly store: Store; readonly clock: Clock };

/** Amounts in micros; null: no limit. Times in milliseconds since 1970. */
export type Spending = {
  readonly period: UsagePeriod;
  readonly limit: number | null;
  readonly spent: number;
  readonly from: number;
  readonly to: number;
};

/** Rejects when it cannot be read: then nothing may be spent. */
export const spendingOf = async ({ store, clock }: Deps, user_id: string): Promise<Spending> => {
  const { spend_limit_micros, period } = await readUsageLimit(store);
  const limit = (await ownLimit(store, user_id)) ?? spend_limit_micros;
  const { from, to } = periodAt(period, clock.now());
  const [found] = await store.scan(sumCost({ user_id, from, to }));
  return { period, limit, spent: found?.spent ?? 0, from, to };
};

/** Undefined while they may spend. Calls of models without a price are in no sum. */
export const exceededBy = async (deps: Deps, user_id: string): Promise<(Spending & { limit: number }) | undefined> => {
  if (!(await isLimited(deps.store, user_id))) return undefined;
  const spending = await spendingOf(deps, user_id);
  const { limit, spent } = spending;
  return limit !== null && spent >= limit ? { ...spending, limit } : undefined;
};

/** Spares the sum where nobody has set a limit. */
const isLimited = async (store: Store, user_id: string): Promise<boolean> =>
  (await readUsageLimit(store)).spend_limit_micros !== null || (await ownLimit(store, user_id)) !== undefined;

/** Of the user, else the lowest of the user's groups. */
const ownLimit = async (store: Store, user_id: string): Promise<number | undefined> => {
  const own = await readUserLimit(store, user_id);
  if (own !== undefined) return own;
  const { groups } = await readMemberships(store, user_id);
  const limits = await Promise.all(groups.map((id) => readGroupLimit(store, id)));
  const set = limits.filter((limit) => limit !== undefined);
  return set.length === 0 ? undefined : Math.min(...set);
};
