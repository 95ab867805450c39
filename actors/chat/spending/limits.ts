// The limits on a model call: the spend limit of the person who pays, which is their own, else the lowest of their groups, else the general
// one (rule SP-5), and every budget that applies to the call (rule BU-1).
import type { Clock } from "#base/clock.ts";
import { type BudgetRow, type CallScope, listBudgetsOn } from "#db/budgets/budgets.ts";
import { type PeriodBudget, type PeriodUsage, personBudgetId, readPeriodUsage } from "#db/budgets/periods.ts";
import { sumCost } from "#db/chats/spend.ts";
import { readLimitsOn } from "#db/chats/usage-limits.ts";
import type { Store } from "#db/engine/store.ts";
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";

const DAY_MS = 86_400_000;

/** Returns the day, the week from Monday or the month in UTC that contains `now`, in milliseconds since 1970. `to` is exclusive. */
export const toPeriod = (period: UsagePeriod, now: number): { readonly from: number; readonly to: number } => {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (period === "month") return { from: Date.UTC(year, month), to: Date.UTC(year, month + 1) };
  const day = Date.UTC(year, month, date.getUTCDate());
  if (period === "day") return { from: day, to: day + DAY_MS };
  const monday = day - ((date.getUTCDay() + 6) % 7) * DAY_MS;
  return { from: monday, to: monday + 7 * DAY_MS };
};

type Deps = { readonly store: Store; readonly clock: Clock };

/** A limit in its current period, in micros or tokens. */
export type Limit = PeriodBudget & { readonly limit: number; readonly period: UsagePeriod };

/** The limit that blocks a call. `isReserved`: running calls have reserved the remainder, which may become available soon. */
export type ReachedLimit = { readonly limit: Limit; readonly used: PeriodUsage; readonly isReserved: boolean };

/** Amounts in micros; null means no limit. Times in milliseconds since 1970. */
export type Spending = {
  readonly period: UsagePeriod;
  /** Includes what was added for this period. */
  readonly limit: number | null;
  readonly spent: number;
  readonly from: number;
  readonly to: number;
};

/** Returns a budget as a limit for the period that contains `now`. */
export const toLimit = ({ id, scope, scope_id, period, unit, amount }: BudgetRow, now: number): Limit => {
  const { from, to } = toPeriod(period, now);
  return { budget_id: id, scope, scope_id, unit, period, limit: amount, begins_at: from, ends_at: to };
};

/** Returns a person's spend limit, or undefined if they have none. */
export const loadPersonLimit = async ({ store, clock }: Deps, user_id: string): Promise<Limit | undefined> => {
  const { limit, period } = await loadAmount(store, user_id);
  return limit === null ? undefined : toPersonLimit(user_id, limit, period, clock.now());
};

const loadAmount = async (store: Store, user_id: string) => {
  const { everybody, own } = await readLimitsOn(store, user_id);
  return { limit: own ?? everybody.spend_limit_micros, period: everybody.period };
};

const toPersonLimit = (user_id: string, limit: number, period: UsagePeriod, now: number): Limit => {
  const { from, to } = toPeriod(period, now);
  const budget = { budget_id: personBudgetId(user_id), scope: "person", scope_id: user_id, unit: "usd" } as const;
  return { ...budget, period, limit, begins_at: from, ends_at: to };
};

/** Returns all limits on a call that begins now. Rejects when the limits cannot be read; then nothing may be spent. */
export const loadLimits = async (deps: Deps, scope: CallScope): Promise<readonly Limit[]> => {
  const [person, rows] = await Promise.all([
    loadPersonLimit(deps, scope.user_id),
    deps.store.all(listBudgetsOn(scope)),
  ]);
  const now = deps.clock.now();
  return [...(person ? [person] : []), ...rows.map((row) => toLimit(row, now))];
};

/** Returns the usage of a limit, and whether it is used up. */
export const loadUsed = async (store: Store, limit: Limit): Promise<PeriodUsage & { readonly isReached: boolean }> => {
  const [figures] = await store.scan(readPeriodUsage(limit));
  if (!figures) throw new Error("a sum has no row");
  return { ...figures, isReached: figures.spent >= limit.limit + figures.extra };
};

/**
 * Returns how much a person has spent in the current period, and their limit. Rejects when these cannot be read; then nothing may be
 * spent.
 */
export const loadSpending = async ({ store, clock }: Deps, user_id: string): Promise<Spending> => {
  const { limit, period } = await loadAmount(store, user_id);
  const now = clock.now();
  const { from, to } = toPeriod(period, now);
  if (limit !== null) {
    const { spent, extra } = await loadUsed(store, toPersonLimit(user_id, limit, period, now));
    return { period, limit: limit + extra, spent, from, to };
  }
  const [found] = await store.scan(sumCost({ user_id, from, to }));
  return { period, limit, spent: found?.spent ?? 0, from, to };
};

/**
 * Returns undefined while the user may spend. Skips the sum if no limit is set. Calls of models without a price are not part of any sum.
 */
export const findExceededLimit = async (
  deps: Deps,
  user_id: string,
): Promise<(Spending & { limit: number }) | undefined> => {
  const limit = await loadPersonLimit(deps, user_id);
  if (!limit) return undefined;
  const { spent, extra, isReached } = await loadUsed(deps.store, limit);
  if (!isReached) return undefined;
  return { period: limit.period, limit: limit.limit + extra, spent, from: limit.begins_at, to: limit.ends_at };
};
