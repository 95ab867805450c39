// Spend limits: the settings of administrators, a user's status, and the check before spending.
import { findExceededLimit, loadSpending } from "#actors/chat/spending/limits.ts";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, forbidden, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import {
  deleteLimit,
  type LimitOwner,
  listLimits,
  readLimit,
  readUsageLimit,
  upsertLimit,
  upsertUsageLimit,
} from "#db/chats/usage-limits.ts";
import type { Store } from "#db/engine/store.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { findGroup } from "#db/users/groups.ts";
import { findOrganization } from "#db/users/organizations.ts";
import { findUser } from "#db/users/users.ts";
import type { UsageLimitStatus, UsageLimits, UsagePeriod } from "#schema/chats/usage-limit.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { findPrice } from "#src/llm/prices.ts";
import { canConfigureChats } from "../access.ts";
import { resumeLimitedChats } from "../budgets/budgets.ts";
import type { DomainContext } from "../context.ts";
import { findGroupFor } from "../groups/find.ts";
import { loadOrganization } from "../organizations/find.ts";
import { findUserInPath } from "../users/find.ts";

/**
 * Rejects with 409 when the limit is reached, with the spending, the limit and the time of the reset. If the spending cannot be read,
 * nothing may be spent, so this throws, too.
 */
export const checkUsageLimit = async (ctx: DomainContext, user_id: string): Promise<void> => {
  const exceeded = await findExceededLimit(ctx, user_id);
  if (!exceeded) return;
  const { spent, limit, period, to } = exceeded;
  throw new AppError("conflict", "The spend limit is reached.", {
    detail: `The limit of this ${period} resets at ${toRfc3339(to)}.`,
    reason: "usage_limit",
    members: { spent_micros: spent, limit_micros: limit, resets_at: toRfc3339(to) },
  });
};

/** Returns a user's limit and spending in the current period. */
export const loadUsageLimitStatus = async (ctx: DomainContext, user_id: string): Promise<UsageLimitStatus> => {
  const { period, limit, spent, from, to } = await loadSpending(ctx, user_id);
  return {
    is_limited: limit !== null,
    period,
    spend_limit_micros: limit,
    current_spend: spent,
    period_start: toRfc3339(from),
    period_end: toRfc3339(to),
  };
};

const checkAdmin = (caller: UserCaller): void => {
  if (!canConfigureChats(caller)) throw forbidden("Only administrators can set limits and see all of them.");
};

/** Returns all limits. Rejects with 403. */
export const loadUsageLimits = async (
  { store, modelSettings }: DomainContext,
  caller: UserCaller,
): Promise<UsageLimits> => {
  checkAdmin(caller);
  const { updated_at, ...limit } = await readUsageLimit(store);
  const { providers, models } = await modelSettings.list();
  const unpriced = models.filter((model) => {
    const provider = providers.find(({ id }) => id === model.provider_id);
    return model.enabled && provider?.enabled && !findPrice(provider.provider, model.model, model.model_config.cost);
  });
  const users = (await listLimits(store, "user")).map(async ({ id, micros }) => {
    const user = await store.get(findUser({ id }));
    const fields = user && { user_id: id, username: user.username, name: user.name, avatar_url: user.avatar_url };
    return fields ? [{ ...fields, spend_limit_micros: micros }] : [];
  });
  const groups = (await listLimits(store, "group")).map(async ({ id, micros }) => {
    const fields = await presentGroupName(store, id);
    return fields ? [{ ...fields, spend_limit_micros: micros }] : [];
  });
  return {
    ...limit,
    updated_at: updated_at === null ? null : toRfc3339(updated_at),
    unpriced_model_count: unpriced.length,
    overrides: (await Promise.all(users)).flat(),
    group_overrides: (await Promise.all(groups)).flat(),
  };
};

/** The group of all members is shown under its organization's name. */
const presentGroupName = async (store: Store, id: string) => {
  const group = await store.get(findGroup({ id }));
  if (group && group.organization_id !== id) {
    return { group_id: id, group_name: group.name, group_display_name: group.display_name };
  }
  const organization = await store.get(findOrganization({ id }));
  return organization && { group_id: id, group_name: organization.name, group_display_name: organization.display_name };
};

type LimitTarget = { readonly id: string; readonly organization_id?: string };

const findUserTarget = async (store: Store, named: string, caller: UserCaller): Promise<LimitTarget> => {
  const { id } = await findUserInPath(store, named, caller);
  return { id };
};

/** Returns a group by ID, or an organization by name or ID, which means the group of all its members. Rejects with 404. */
const findGroupTarget = async (store: Store, named: string, caller: UserCaller): Promise<LimitTarget> => {
  if (isUuid(named)) {
    const { group } = await findGroupFor(store, named, caller);
    return { id: group.id, organization_id: group.organization_id };
  }
  const { id } = await loadOrganization(store, named, caller);
  return { id, organization_id: id };
};

/** Sets the limit of all users. Rejects with 403. */
export const setUsageLimit = async (
  ctx: DomainContext,
  caller: UserCaller,
  settings: { readonly spend_limit_micros: number | null; readonly period: UsagePeriod },
): Promise<void> => {
  checkAdmin(caller);
  const { store, clock } = ctx;
  const now = clock.now();
  const before = await readUsageLimit(store);
  const after = { ...settings, updated_at: now };
  const entry = { now, action: "write", resource_type: "chat_settings", target: "usage_limit", before, after } as const;
  await store.commit([upsertUsageLimit(after), insertAudit(entry)]);
  await resumeLimitedChats(ctx);
};

/**
 * Sets or removes (undefined) the limit of one user or group. Rejects with 403, or 404 for an unknown user or group or a limit that is not
 * set.
 */
export const setLimit = async (
  ctx: DomainContext,
  caller: UserCaller,
  { owner, named }: { readonly owner: LimitOwner; readonly named: string },
  micros: number | undefined,
): Promise<void> => {
  checkAdmin(caller);
  const { store, clock } = ctx;
  const { id, organization_id } =
    owner === "user" ? await findUserTarget(store, named, caller) : await findGroupTarget(store, named, caller);
  const before = await readLimit(store, owner, id);
  if (micros === undefined && before === undefined) throw notFound();
  const toLimitFields = (spend_limit_micros: number | undefined) =>
    spend_limit_micros === undefined ? undefined : { spend_limit_micros };
  const base = { now: clock.now(), action: "write", resource_id: id, target: "usage_limit" } as const;
  const ownerFields =
    owner === "user"
      ? ({ resource_type: "user_chat_settings" } as const)
      : ({ resource_type: "chat_settings", organization_id } as const);
  await store.commit([
    micros === undefined ? deleteLimit(owner, id) : upsertLimit(owner, id, micros),
    insertAudit({ ...base, ...ownerFields, before: toLimitFields(before), after: toLimitFields(micros) }),
  ]);
  await resumeLimitedChats(ctx);
};
