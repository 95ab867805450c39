// Budgets as they were set, and which of them a model call counts for.
import { and, asc } from "drizzle-orm";
import { build, deleteBy, findBy, given, insertInto, type Query, query, updateBy } from "../engine/sql.ts";
import { budgets } from "../schema/budgets.ts";

export type BudgetRow = typeof budgets.$inferSelect;

/** Whom a model call counts for. Texts are empty where there is none. */
export type CallPlace = {
  readonly user_id: string;
  /** Where the call is made; with a person's token the person's home organization. Budgets of other organizations and their groups do not count. */
  readonly organization_id: string;
  readonly template_id: string;
  readonly root_chat_id: string;
};

/** The oldest first. */
export const listBudgets = query(build.select().from(budgets).orderBy(asc(budgets.created_at), asc(budgets.id)));

export const findBudget = findBy(budgets, budgets.id);

/** {scope, scope_id, period, unit}: there is at most one. */
export const findBudgetFor = query(
  build
    .select()
    .from(budgets)
    .where(and(given(budgets.scope), given(budgets.scope_id), given(budgets.period), given(budgets.unit))),
);

export const insertBudget = insertInto(budgets);
export const updateBudget = updateBy(budgets, budgets.id);
export const deleteBudget = deleteBy(budgets, budgets.id);

/** That budget `b` limits a call, whose place is four parameters in the order of `CallPlace`. */
export const limitsCall = ([user, organization, template, chat]: readonly [string, string, string, string]): string =>
  `(b.scope = 'everyone'
    or (b.scope = 'user' and b.scope_id = ${user})
    or (b.scope = 'group' and b.scope_id in (select group_id from group_members
      where user_id = ${user} and organization_id = ${organization}))
    or (b.scope = 'organization' and b.scope_id = ${organization})
    or (b.scope = 'template' and b.scope_id = ${template})
    or (b.scope = 'chat' and b.scope_id = ${chat}))`;

/** The budgets that limit a call, the oldest first. */
export const listBudgetsOn = (place: CallPlace): Query<BudgetRow> => ({
  sql: `select id, scope, scope_id, period, unit, amount, created_at, updated_at from budgets b
    where ${limitsCall(["?1", "?2", "?3", "?4"])} order by created_at, id`,
  params: [place.user_id, place.organization_id, place.template_id, place.root_chat_id],
  map: ([id, scope, scope_id, period, unit, amount, created_at, updated_at]) => ({
    id: String(id),
    scope: String(scope) as BudgetRow["scope"],
    scope_id: String(scope_id),
    period: String(period) as BudgetRow["period"],
    unit: String(unit) as BudgetRow["unit"],
    amount: Number(amount),
    created_at: Number(created_at),
    updated_at: Number(updated_at),
  }),
});
