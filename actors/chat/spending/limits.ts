// How much somebody may spend on models, and how much they have: the own limit, else the lowest of their groups, else everybody's
// (rule SP-5).
import type { Clock } from "#base/clock.ts";
import { type SpendingLimit, sumReserved } from "#db/chats/reservations.ts";
import { sumCost } from "#db/chats/spend.ts";
import { readLimitsOn } from "#db/chats/usage-limits.ts";
import type { Store } from "#db/engine/store.ts";
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
export const loadSpending = async (deps: Deps, user_id: string): Promise<Spending> =>
  spendingWithin(deps, user_id, await limitOn(deps.store, user_id));

type Limit = Pick<Spending, "limit" | "period">;

const limitOn = async (store: Store, user_id: string): Promise<Limit> => {
  const { everybody, own } = await readLimitsOn(store, user_id);
  return { limit: own ?? everybody.spend_limit_micros, period: everybody.period };
};

const spendingWithin = async ({ store, clock }: Deps, user_id: string, { limit, period }: Limit): Promise<Spending> => {
  const { from, to } = periodAt(period, clock.now());
  const [found] = await store.scan(sumCost({ user_id, from, to }));
  return { period, limit, spent: found?.spent ?? 0, from, to };
};

/** Returns the limit on somebody's calls that begin now; undefined: there is none. */
export const loadSpendingLimit = async (deps: Deps, user_id: string): Promise<SpendingLimit | undefined> => {
  const { limit, period } = await limitOn(deps.store, user_id);
  return limit === null ? undefined : { limit, ...periodAt(period, deps.clock.now()) };
};

/** Undefined while they may spend. Calls of models without a price are in no sum, which is spared where nobody has set a limit. */
export const exceededBy = async (deps: Deps, user_id: string): Promise<(Spending & { limit: number }) | undefined> => {
  const { limit, period } = await limitOn(deps.store, user_id);
  if (limit === null) return undefined;
  const spending = await spendingWithin(deps, user_id, { limit, period });
  const open = await deps.store.get(sumReserved({ user_id }));
  return spending.spent + (open?.reserved ?? 0) >= limit ? { ...spending, limit } : undefined;
};
