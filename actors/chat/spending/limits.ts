// What limits a model call: the spend limit of the person who pays, which is their own, else the lowest of their groups, else everybody's (rule SP-5), and
// every budget that the call counts for (rule BU-1).
import type { Clock } from "#base/clock.ts";
import { type BudgetRow, type CallPlace, listBudgetsOn } from "#db/budgets/budgets.ts";
import { type Account, type AccountFigures, personBudgetId, readAccount } from "#db/budgets/periods.ts";
import { sumCost } from "#db/chats/spend.ts";
import { readLimitsOn } from "#db/chats/usage-limits.ts";
import type { Store } from "#db/engine/store.ts";
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";
import { periodAt } from "./period.ts";

type Deps = { readonly store: Store; readonly clock: Clock };

/** A limit in its present period: micros or tokens. */
export type Limit = Account & { readonly limit: number; readonly period: UsagePeriod };

/** The limit that keeps a call from beginning. `isHeld`: calls that are under way may use the rest of it up, so that it may be free again soon. */
export type Reached = { readonly limit: Limit; readonly used: AccountFigures; readonly isHeld: boolean };

/** Amounts in micros; null: no limit. Times in milliseconds since 1970. */
export type Spending = {
  readonly period: UsagePeriod;
  /** With what was added for this period. */
  readonly limit: number | null;
  readonly spent: number;
  readonly from: number;
  readonly to: number;
};

/** Returns a budget in the period that `now` is in. */
export const toLimit = ({ id, scope, scope_id, period, unit, amount }: BudgetRow, now: number): Limit => {
  const { from, to } = periodAt(period, now);
  return { budget_id: id, scope, scope_id, unit, period, limit: amount, begins_at: from, ends_at: to };
};

/** Returns the spend limit of a person; undefined: there is none. */
export const personLimit = async ({ store, clock }: Deps, user_id: string): Promise<Limit | undefined> => {
  const { limit, period } = await amountFor(store, user_id);
  return limit === null ? undefined : toPersonLimit(user_id, limit, period, clock.now());
};

const amountFor = async (store: Store, user_id: string) => {
  const { everybody, own } = await readLimitsOn(store, user_id);
  return { limit: own ?? everybody.spend_limit_micros, period: everybody.period };
};

const toPersonLimit = (user_id: string, limit: number, period: UsagePeriod, now: number): Limit => {
  const { from, to } = periodAt(period, now);
  const of = { budget_id: personBudgetId(user_id), scope: "person", scope_id: user_id, unit: "usd" } as const;
  return { ...of, period, limit, begins_at: from, ends_at: to };
};

/** Returns everything that limits a call which begins now. Rejects when it cannot be read: then nothing may be spent. */
export const limitsOn = async (deps: Deps, place: CallPlace): Promise<readonly Limit[]> => {
  const [person, rows] = await Promise.all([personLimit(deps, place.user_id), deps.store.all(listBudgetsOn(place))]);
  const now = deps.clock.now();
  return [...(person ? [person] : []), ...rows.map((row) => toLimit(row, now))];
};

/** Returns what is used of a limit, and whether it is used up. */
export const loadUsed = async (
  store: Store,
  limit: Limit,
): Promise<AccountFigures & { readonly isReached: boolean }> => {
  const [figures] = await store.scan(readAccount(limit));
  if (!figures) throw new Error("a sum has no row");
  return { ...figures, isReached: figures.spent >= limit.limit + figures.extra };
};

/** Rejects when it cannot be read: then nothing may be spent. */
export const loadSpending = async ({ store, clock }: Deps, user_id: string): Promise<Spending> => {
  const { limit, period } = await amountFor(store, user_id);
  const now = clock.now();
  const { from, to } = periodAt(period, now);
  if (limit !== null) {
    const { spent, extra } = await loadUsed(store, toPersonLimit(user_id, limit, period, now));
    return { period, limit: limit + extra, spent, from, to };
  }
  const [found] = await store.scan(sumCost({ user_id, from, to }));
  return { period, limit, spent: found?.spent ?? 0, from, to };
};

/** Undefined while they may spend. Calls of models without a price are in no sum, which is spared where nobody has set a limit. */
export const exceededBy = async (deps: Deps, user_id: string): Promise<(Spending & { limit: number }) | undefined> => {
  const limit = await personLimit(deps, user_id);
  if (!limit) return undefined;
  const { spent, extra, isReached } = await loadUsed(deps.store, limit);
  if (!isReached) return undefined;
  return { period: limit.period, limit: limit.limit + extra, spent, from: limit.begins_at, to: limit.ends_at };
};
