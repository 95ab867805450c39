// Configured budgets, and which of them apply to a model call.
import { and, asc } from "drizzle-orm";
import {
  build,
  deleteBy,
  eqParam,
  findBy,
  insertInto,
  type Query,
  query,
  type Statement,
  updateBy,
} from "../engine/sql.ts";
import { budgets } from "../schema/budgets.ts";

export type BudgetRow = typeof budgets.$inferSelect;

/** The entities to which a model call is charged. Strings are empty if not applicable. */
export type CallScope = {
  readonly user_id: string;
  /**
   * The organization of the call; for a person's token, the person's home organization. Budgets of other organizations and their groups
   * do not apply.
   */
  readonly organization_id: string;
  readonly template_id: string;
  readonly root_chat_id: string;
};

/** All budgets, oldest first. */
export const listBudgets = query(build.select().from(budgets).orderBy(asc(budgets.created_at), asc(budgets.id)));

export const findBudget = findBy(budgets, budgets.id);

/** The budget with these attributes; at most one row. Parameters: {scope, scope_id, period, unit}. */
export const findBudgetFor = query(
  build
    .select()
    .from(budgets)
    .where(and(eqParam(budgets.scope), eqParam(budgets.scope_id), eqParam(budgets.period), eqParam(budgets.unit))),
);

export const insertBudget = insertInto(budgets);
export const updateBudget = updateBy(budgets, budgets.id);
export const deleteBudget = deleteBy(budgets, budgets.id);

const deleteWhere = (condition: string, id: string): Statement[] => [
  {
    touches: [],
    sql: `delete from budget_periods where budget_id in (select id from budgets where ${condition})`,
    rows: [[id]],
  },
  { touches: [], sql: `delete from budgets where ${condition}`, rows: [[id]] },
];

/** Deletes the budgets of a group, with their usage. */
export const deleteBudgetsOfGroup = (group_id: string): Statement[] =>
  deleteWhere("scope = 'group' and scope_id = ?1", group_id);

/** Deletes the budgets of an organization, its groups and its templates, with their usage. Must precede the deletion of the groups. */
export const deleteBudgetsOfOrganization = (organization_id: string): Statement[] =>
  deleteWhere(
    `(scope = 'organization' and scope_id = ?1)
      or (scope = 'group' and scope_id in (select id from groups where organization_id = ?1))
      or (scope = 'template' and scope_id in (select id from templates where organization_id = ?1))`,
    organization_id,
  );

/** Returns the condition that budget `b` limits a call, whose `CallScope` is given as four parameters, in the order of its members. */
export const limitsCall = ([user, organization, template, chat]: readonly [string, string, string, string]): string =>
  `(b.scope = 'everyone'
    or (b.scope = 'user' and b.scope_id = ${user})
    or (b.scope = 'group' and b.scope_id in (select group_id from group_members
      where user_id = ${user} and organization_id = ${organization}))
    or (b.scope = 'organization' and b.scope_id = ${organization})
    or (b.scope = 'template' and b.scope_id = ${template})
    or (b.scope = 'chat' and b.scope_id = ${chat}))`;

/** Returns the budgets that limit a call, oldest first. */
export const listBudgetsOn = (scope: CallScope): Query<BudgetRow> => ({
  sql: `select id, scope, scope_id, period, unit, amount, created_at, updated_at from budgets b
    where ${limitsCall(["?1", "?2", "?3", "?4"])} order by created_at, id`,
  params: [scope.user_id, scope.organization_id, scope.template_id, scope.root_chat_id],
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
