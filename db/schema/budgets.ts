// Budgets: the maximum cost of all model calls of a person, group, organization, template, chat or everyone in a period, and the usage in
// periods with any call.
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { BudgetPeriod, BudgetScope, BudgetUnit } from "#schema/ai/budget.ts";
import { uncachedTable } from "./cache-dependencies.ts";

export const budgets = uncachedTable(
  "budgets",
  {
    id: text().primaryKey(),
    scope: text().$type<BudgetScope>().notNull(),
    /** The ID of the person, group, organization, template or root chat; empty for everyone. */
    scope_id: text().notNull(),
    period: text().$type<BudgetPeriod>().notNull(),
    unit: text().$type<BudgetUnit>().notNull(),
    /** Micros or tokens. */
    amount: integer().notNull(),
    created_at: integer().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [uniqueIndex("budgets_scope").on(table.scope, table.scope_id, table.period, table.unit)],
);

/**
 * The usage of a budget in one period. The period's first call creates the row from the ledger, and every later ledger row updates it in
 * the same batch. A person's spend limit is the budget `person:<user id>`.
 */
export const budget_periods = uncachedTable(
  "budget_periods",
  {
    budget_id: text().notNull(),
    /** Milliseconds since 1970; `ends_at` is exclusive. */
    begins_at: integer().notNull(),
    ends_at: integer().notNull(),
    unit: text().$type<BudgetUnit>().notNull(),
    spent: integer().notNull(),
    /** Added to the budget for this period only. */
    extra: integer().notNull().default(0),
    /** When people were warned that most of it is used; null: not yet. */
    warned_at: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.budget_id, table.begins_at, table.ends_at] }),
    index("budget_periods_end").on(table.ends_at),
  ],
);
