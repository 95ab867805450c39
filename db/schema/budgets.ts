// Budgets: what model calls of a person, a group, an organization, a template, a chat or everyone may cost together in a period, and what
// each has used in the periods that had a call.
import { index, integer, primaryKey, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { BudgetPeriod, BudgetScope, BudgetUnit } from "#schema/ai/budget.ts";
import { quietTable } from "./touching.ts";

export const budgets = quietTable(
  "budgets",
  {
    id: text().primaryKey(),
    scope: text().$type<BudgetScope>().notNull(),
    /** The id of the person, group, organization, template or root chat; empty for everyone. */
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
 * What was used of a budget in one period. A row is made from the ledger when the first call of the period begins, and grows in the batch of each row of
 * the ledger after that. The spend limit of a person is here as the budget `person:<user id>`.
 */
export const budget_periods = quietTable(
  "budget_periods",
  {
    budget_id: text().notNull(),
    /** Milliseconds since 1970; `ends_at` is not included. */
    begins_at: integer().notNull(),
    ends_at: integer().notNull(),
    unit: text().$type<BudgetUnit>().notNull(),
    spent: integer().notNull(),
    /** What was added to the budget for this period only. */
    extra: integer().notNull().default(0),
    /** When people were told that most of it is used; null: not yet. */
    warned_at: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.budget_id, table.begins_at, table.ends_at] }),
    index("budget_periods_end").on(table.ends_at),
  ],
);
