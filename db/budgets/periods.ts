// Usage of budgets per period. A period's row is created from the sum of the ledger, and later ledger rows update it in their batch.
// Reserved amounts are read from the reservations of running calls. Only one node writes at a time, so that two nodes cannot spend the same
// amount.
import type { BudgetScope, BudgetUnit } from "#schema/ai/budget.ts";
import type { Query, Statement } from "../engine/sql.ts";
import { type CallScope, limitsCall } from "./budgets.ts";

/** Which calls a budget limits. `person`: the calls of one person, whose spend limit is stored like a budget. */
export type PeriodScope = BudgetScope | "person";

/** A budget and one of its periods. Times in milliseconds since 1970; `ends_at` is exclusive. */
export type PeriodBudget = {
  readonly budget_id: string;
  readonly scope: PeriodScope;
  readonly scope_id: string;
  readonly unit: BudgetUnit;
  readonly begins_at: number;
  readonly ends_at: number;
};

/** Returns the budget ID of a person's spend limit. */
export const personBudgetId = (user_id: string): string => `person:${user_id}`;

/** By scope: the SQL condition that a budget limits the call of a ledger row or reservation. `?5` is the scope ID. */
const LIMITS_ROW: Readonly<Record<PeriodScope, (row: string) => string>> = {
  everyone: () => "?5 = ''",
  user: (row) => `${row}.user_id = ?5`,
  person: (row) => `${row}.user_id = ?5`,
  group: (row) => `exists (select 1 from group_members g
    where g.group_id = ?5 and g.user_id = ${row}.user_id and g.organization_id = ${row}.organization_id)`,
  organization: (row) => `${row}.organization_id = ?5`,
  template: (row) => `${row}.template_id = ?5`,
  chat: (row) => `${row}.root_chat_id = ?5`,
};

const SPENT: Readonly<Record<BudgetUnit, string>> = {
  usd: "sum(s.cost_micros)",
  tokens: "sum(s.input_tokens + s.output_tokens + s.cache_read_tokens + s.cache_creation_tokens)",
};
const RESERVED: Readonly<Record<BudgetUnit, string>> = {
  usd: "sum(r.reserved_micros)",
  tokens: "sum(r.reserved_tokens)",
};

const selectSpent = ({ scope, unit }: PeriodBudget): string =>
  `coalesce((select ${SPENT[unit]} from model_spend s
    where ${LIMITS_ROW[scope]("s")} and s.created_at >= ?2 and s.created_at < ?3), 0)`;
const selectReserved = ({ scope, unit }: PeriodBudget): string =>
  `coalesce((select ${RESERVED[unit]} from model_reservations r where ${LIMITS_ROW[scope]("r")}), 0)`;

const IS_PERIOD = "budget_id = ?1 and begins_at = ?2 and ends_at = ?3";
const toParams = ({ budget_id, begins_at, ends_at, unit, scope_id }: PeriodBudget) =>
  [budget_id, begins_at, ends_at, unit, scope_id] as const;

/** Creates a period's row, if missing, from the ledger. */
export const openPeriod = (budget: PeriodBudget): Statement => ({
  touches: [],
  alone: "spending",
  sql: `insert into budget_periods (budget_id, begins_at, ends_at, unit, spent, extra)
    select cast(?1 as text), cast(?2 as bigint), cast(?3 as bigint), cast(?4 as text), ${selectSpent(budget)}, 0
    where not exists (select 1 from budget_periods where ${IS_PERIOD})`,
  rows: [[...toParams(budget)]],
});

/** A guard: rejects the batch as `stale` once the spent and reserved amounts reach the limit. */
export const guardPeriod = (budget: PeriodBudget, limit: number): Statement => ({
  touches: [],
  alone: "spending",
  expect: 1,
  sql: `update budget_periods set unit = ?4 where ${IS_PERIOD}
    and spent + ${selectReserved(budget)} < cast(?6 as bigint) + extra`,
  rows: [[...toParams(budget), limit]],
});

export type PeriodUsage = {
  readonly spent: number;
  readonly reserved: number;
  readonly extra: number;
  readonly warned_at: number | null;
};

/** Returns the usage of a budget, even if its period has no row yet. For `store.scan`. */
export const readPeriodUsage = (budget: PeriodBudget): Query<PeriodUsage> => ({
  sql: `select coalesce((select spent from budget_periods where ${IS_PERIOD}), ${selectSpent(budget)}),
      ${selectReserved(budget)}, (select extra from budget_periods where ${IS_PERIOD}),
      (select warned_at from budget_periods where ${IS_PERIOD}), cast(?4 as text)`,
  params: [...toParams(budget)],
  map: ([spent, reserved, extra, warned_at]) => ({
    spent: Number(spent),
    reserved: Number(reserved),
    extra: Number(extra ?? 0),
    warned_at: warned_at === null || warned_at === undefined ? null : Number(warned_at),
  }),
});

/** Raises a budget for this period. The period's row must exist. */
export const raisePeriod = (budget: PeriodBudget, amount: number): Statement => ({
  touches: [],
  expect: 1,
  sql: `update budget_periods set extra = extra + cast(?4 as bigint), warned_at = null where ${IS_PERIOD}`,
  rows: [[budget.budget_id, budget.begins_at, budget.ends_at, amount]],
});

/** Records that people were warned about the budget. Rejects the batch as `stale` if that was already recorded. */
export const markWarned = (budget: PeriodBudget, now: number): Statement => ({
  touches: [],
  expect: 1,
  sql: `update budget_periods set warned_at = cast(?4 as bigint) where ${IS_PERIOD} and warned_at is null`,
  rows: [[budget.budget_id, budget.begins_at, budget.ends_at, now]],
});

/** The usage of one call. */
export type CallUsage = { readonly cost_micros: number; readonly tokens: number };

/** Adds a call's usage to every current period toward which it counts. Part of the batch with its ledger row. */
export const addSpent = (scope: CallScope, { cost_micros, tokens }: CallUsage, now: number): Statement => ({
  touches: [],
  alone: "spending",
  sql: `update budget_periods set spent = spent + case when unit = 'tokens' then cast(?5 as bigint) else cast(?6 as bigint) end
    where begins_at <= ?7 and ends_at > ?7
      and (budget_id = 'person:' || cast(?1 as text) or budget_id in (select b.id from budgets b where ${limitsCall(["?1", "?2", "?3", "?4"])}))`,
  rows: [[scope.user_id, scope.organization_id, scope.template_id, scope.root_chat_id, tokens, cost_micros, now]],
});

/** Deletes the usage of a deleted budget. */
export const deletePeriods = (budget_id: string): Statement => ({
  touches: [],
  sql: "delete from budget_periods where budget_id = ?1",
  rows: [[budget_id]],
});

/** Deletes periods that ended before a time. */
export const deleteOldPeriods = (before: number): Statement => ({
  touches: [],
  sql: "delete from budget_periods where ends_at < ?1",
  rows: [[before]],
});
