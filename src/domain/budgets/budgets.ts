// Budgets: set, list, raise and remove, and resume chats that wait for one.
import { type Limit, loadPersonLimit, loadUsed, toLimit } from "#actors/chat/spending/limits.ts";
import { toRfc3339 } from "#base/clock.ts";
import { type AppError, forbidden, invalidField, notFound } from "#base/errors.ts";
import { isUuid, uuid } from "#base/ids.ts";
import {
  type BudgetRow,
  deleteBudget,
  findBudget,
  findBudgetFor,
  insertBudget,
  listBudgets,
  updateBudget,
} from "#db/budgets/budgets.ts";
import { findScopeHome, findScopeName, type ScopeHome } from "#db/budgets/deciders.ts";
import { deletePeriods, openPeriod, personBudgetId, raisePeriod } from "#db/budgets/periods.ts";
import { listPausedChats } from "#db/chats/chats.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { Budget, PutBudget } from "#schema/ai/budget.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canConfigureChats, canManageBudget, isLimitedBy } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** Returns the budgets that the caller manages or is limited by, with their usage. */
export const readBudgets = async (ctx: DomainContext, caller: UserCaller): Promise<Budget[]> => {
  const rows = await ctx.store.all(listBudgets());
  const shown: Budget[] = [];
  for (const row of rows) {
    const isVisible = isLimitedBy(caller, row) || canManageBudget(caller, await loadTarget(ctx, row));
    if (isVisible) shown.push(await presentBudget(ctx, row));
  }
  return shown;
};

type ScopeRef = Pick<BudgetRow, "scope" | "scope_id">;

const NO_HOME: ScopeHome = { organization_id: "", owner_id: "", is_sub_chat: false };

/** Returns the scope with the organization and owner that decide access to it; both are empty for a deleted scope. */
const loadTarget = async ({ store }: DomainContext, { scope, scope_id }: ScopeRef) => ({
  scope,
  ...((await store.get(findScopeHome(scope, scope_id))) ?? NO_HOME),
});

const presentBudget = async ({ store, clock }: DomainContext, row: BudgetRow): Promise<Budget> => {
  const limit = toLimit(row, clock.now());
  const { spent, reserved, extra } = await loadUsed(store, limit);
  const { id, scope, scope_id, period, unit, amount } = row;
  const name = scope_id === "" ? "" : ((await store.get(findScopeName(scope_id))) ?? "");
  const times = { period_start: toRfc3339(limit.begins_at), resets_at: toRfc3339(limit.ends_at) };
  return { id, scope, scope_id, name, period, unit, amount, extra, spent, reserved, ...times };
};

/** Creates or replaces a budget. Throws 400 for an unknown scope and 403 without permission. */
export const putBudget = async (ctx: DomainContext, caller: UserCaller, input: PutBudget): Promise<Budget> => {
  const { store, clock } = ctx;
  const { scope, scope_id = "", period, unit, amount } = input;
  if (scope === "everyone" && scope_id !== "") throw invalidField("scope_id", "must be absent for everyone");
  if (scope !== "everyone" && scope_id === "") throw invalidField("scope_id", "is required for this scope");
  const home = await store.get(findScopeHome(scope, scope_id));
  if (!canManageBudget(caller, { scope, ...(home ?? NO_HOME) })) throw budgetForbidden();
  if (!home) throw invalidField("scope_id", `is not the ID of a ${scope}`);
  if (home.is_sub_chat) throw invalidField("scope_id", "is a sub-chat: set the budget of its root chat");
  const now = clock.now();
  const before = await store.get(findBudgetFor({ scope, scope_id, period, unit }));
  const after: BudgetRow = before
    ? { ...before, amount, updated_at: now }
    : { id: uuid(), scope, scope_id, period, unit, amount, created_at: now, updated_at: now };
  const write = before ? updateBudget(before.id, { amount, updated_at: now }, { expect: 1 }) : insertBudget(after);
  await store.commit([
    write,
    toEntry(after, { now, before: toAuditedFields(before), after: toAuditedFields(after) }, home),
  ]);
  await resumeChats(ctx, after.id);
  return presentBudget(ctx, after);
};

const budgetForbidden = (): AppError =>
  forbidden(
    "Only owners of the deployment, administrators of the organization, and the owner of the chat can set this budget.",
  );

/** The audited fields of a budget. */
const toAuditedFields = (row: BudgetRow | undefined) =>
  row && { scope: row.scope, scope_id: row.scope_id, period: row.period, unit: row.unit, amount: row.amount };

type Change = { readonly now: number; readonly before: object | undefined; readonly after: object | undefined };

const toEntry = ({ id }: Pick<BudgetRow, "id">, { now, before, after }: Change, home: ScopeHome) =>
  insertAudit({
    now,
    action: "write",
    resource_type: "chat_settings",
    resource_id: isUuid(id) ? id : undefined,
    organization_id: home.organization_id || undefined,
    target: "budget",
    before,
    after,
  });

/** Removes a budget and resumes chats that wait for it. Throws 403, 404. */
export const removeBudget = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<void> => {
  const { store, clock } = ctx;
  const row = await findChangeableBudget(ctx, caller, id);
  const home = (await store.get(findScopeHome(row.scope, row.scope_id))) ?? NO_HOME;
  const entry = toEntry(row, { now: clock.now(), before: toAuditedFields(row), after: undefined }, home);
  await store.commit([{ ...deleteBudget(id), expect: 1 }, deletePeriods(id), entry]);
  await resumeChats(ctx, id);
};

/** Returns the budget if the caller can change it. Throws 403 for one that only limits them, 404. */
const findChangeableBudget = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<BudgetRow> => {
  const row = isUuid(id) ? await ctx.store.get(findBudget({ id })) : undefined;
  if (!row) throw notFound();
  if (canManageBudget(caller, await loadTarget(ctx, row))) return row;
  throw isLimitedBy(caller, row) ? budgetForbidden() : notFound();
};

/**
 * Raises a budget for the current period and resumes chats that wait for it. The ID `person:` followed by a user's ID means the user's
 * spend limit. Throws 403 or 404.
 */
export const raiseBudget = async (
  ctx: DomainContext,
  caller: UserCaller,
  id: string,
  amount: number,
): Promise<void> => {
  const { store, clock } = ctx;
  const limit = await findLimit(ctx, caller, id);
  const { extra } = await loadUsed(store, limit);
  const now = clock.now();
  const resets_at = toRfc3339(limit.ends_at);
  const change = { now, before: { extra, resets_at }, after: { extra: extra + amount, resets_at } };
  const home =
    limit.scope === "person" ? NO_HOME : await loadTarget(ctx, { scope: limit.scope, scope_id: limit.scope_id });
  await store.commit([openPeriod(limit), raisePeriod(limit, amount), toEntry({ id }, change, home)]);
  await resumeChats(ctx, id);
};

const PERSON_PREFIX = personBudgetId("");

const findLimit = async (ctx: DomainContext, caller: UserCaller, id: string): Promise<Limit> => {
  if (!id.startsWith(PERSON_PREFIX)) return toLimit(await findChangeableBudget(ctx, caller, id), ctx.clock.now());
  const user_id = id.slice(PERSON_PREFIX.length);
  if (!canConfigureChats(caller)) throw user_id === caller.user_id ? budgetForbidden() : notFound();
  const limit = isUuid(user_id) ? await loadPersonLimit(ctx, user_id) : undefined;
  if (!limit) throw notFound();
  return limit;
};

/** Resumes chats that wait for a budget; with `person:`, chats that wait for any spend limit. */
export const resumeChats = async ({ store, chats }: DomainContext, budget_id: string): Promise<void> => {
  for (const { id, budget_pause } of await store.scan(listPausedChats())) {
    const awaitedId = budget_pause?.budget_id ?? "";
    const matches = budget_id === PERSON_PREFIX ? awaitedId.startsWith(PERSON_PREFIX) : awaitedId === budget_id;
    if (matches) await chats.ask(id, "budgetRaised", { budget_id: awaitedId });
  }
};

/** Resumes chats that wait for a spend limit that has changed. */
export const resumeLimitedChats = (ctx: DomainContext): Promise<void> => resumeChats(ctx, PERSON_PREFIX);
