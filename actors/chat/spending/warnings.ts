// Budget notifications: once per period when most of a budget is used, and once when it is used up (rule BU-3).

import { toRfc3339 } from "#base/clock.ts";
import { findScopeName, listDeciders } from "#db/budgets/deciders.ts";
import { markWarned } from "#db/budgets/periods.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import { insertNotification } from "#db/notifications/notifications.ts";
import type { BudgetPause } from "#schema/ai/budget.ts";
import { formatAmount, formatBudgetTitle } from "#schema/ai/budget-words.ts";
import { type Limit, loadUsed, type ReachedLimit } from "./limits.ts";

/** The used share of a budget that triggers the warning. */
const WARNING_RATIO = 0.8;

type Notices = { readonly writes: readonly Statement[]; readonly user_ids: readonly string[] };

/** Returns the notifications to write when most of a budget is used and no warning was sent, or undefined. */
export const loadWarning = async (store: Store, limit: Limit, now: number): Promise<Notices | undefined> => {
  const { spent, extra, warned_at } = await loadUsed(store, limit);
  const total = limit.limit + extra;
  if (warned_at !== null || total === 0 || spent < total * WARNING_RATIO) return undefined;
  const name = await loadName(store, limit);
  const deciders = await store.all(listDeciders(limit.scope_id));
  const ownId = limit.scope === "person" || limit.scope === "user" ? [limit.scope_id] : [];
  const user_ids = [...new Set([...ownId, ...deciders.map(({ id }) => id)])];
  const values = {
    budget: formatBudgetTitle({ ...limit, name }),
    used: `${formatAmount(limit.unit, spent)} of ${formatAmount(limit.unit, total)}`,
    time: toRfc3339(limit.ends_at),
  };
  const dedupe = `budget_nearly_used:${limit.budget_id}:${limit.begins_at}:${extra}`;
  const base = { now, kind: "budget_nearly_used", values, path: BUDGETS_PAGE, dedupe } as const;
  return {
    writes: [markWarned(limit, now), ...user_ids.map((user_id) => insertNotification({ ...base, user_id }))],
    user_ids,
  };
};

const BUDGETS_PAGE = "/admin/budgets";

/** Returns the notifications for people who can raise a used-up budget. Writing them again has no effect. */
export const buildUsedUpNotices = async (
  store: Store,
  { limit, used }: ReachedLimit,
  now: number,
): Promise<Notices> => {
  const deciders = await store.all(listDeciders(limit.scope_id));
  const values = {
    budget: formatBudgetTitle({ ...limit, name: await loadName(store, limit) }),
    limit: formatAmount(limit.unit, limit.limit + used.extra),
    time: toRfc3339(limit.ends_at),
  };
  const dedupe = `budget_used_up:${limit.budget_id}:${limit.begins_at}:${used.extra}`;
  const base = { now, kind: "budget_used_up", values, path: BUDGETS_PAGE, dedupe } as const;
  const user_ids = deciders.map(({ id }) => id);
  return { writes: user_ids.map((user_id) => insertNotification({ ...base, user_id })), user_ids };
};

const loadName = async (store: Store, { scope_id }: Limit): Promise<string> =>
  scope_id === "" ? "" : ((await store.get(findScopeName(scope_id))) ?? "");

/** Minimum suggestion: five dollars, or this many tokens. */
const MIN_SUGGESTION = { usd: 5_000_000, tokens: 100_000 } as const;
/** Suggestions are rounded to whole dollars, or thousands of tokens. */
const SUGGESTION_STEP = { usd: 1_000_000, tokens: 1_000 } as const;

/** Returns the question that a chat asks when a budget is used up. */
export const loadPause = async (store: Store, { limit, used }: ReachedLimit): Promise<BudgetPause> => {
  const { budget_id, scope, scope_id, period, unit, ends_at } = limit;
  const total = limit.limit + used.extra;
  const tenth = Math.ceil(total / 10 / SUGGESTION_STEP[unit]) * SUGGESTION_STEP[unit];
  return {
    budget_id,
    scope,
    name: await loadName(store, limit),
    period,
    unit,
    limit: total,
    spent: used.spent,
    suggested: Math.max(MIN_SUGGESTION[unit], tenth),
    resets_at: toRfc3339(ends_at),
    deciders: await store.all(listDeciders(scope_id)),
  };
};
