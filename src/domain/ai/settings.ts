// Settings of the AI gateway, and views of its ledger for administrators and users.
import { toRfc3339 } from "#base/clock.ts";
import { forbidden } from "#base/errors.ts";
import { listCalls, sumUsage, type UsageRow } from "#db/chats/ledger.ts";
import { ZERO_SPEND } from "#db/chats/spend.ts";
import { readGatewaySettings } from "#db/models/gateway.ts";
import type { AiUsage, GatewayCalls, GatewaySettings, UsageDimension } from "#schema/ai/gateway.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { canConfigureChats } from "../access.ts";
import type { CostRange } from "../chats/cost-range.ts";
import type { DomainContext } from "../context.ts";

const checkAdmin = (caller: UserCaller): void => {
  if (!canConfigureChats(caller)) throw forbidden("Only owners of the deployment can manage the AI gateway.");
};

/** Returns the settings. Rejects with 403 for everyone but owners. */
export const getGatewaySettings = async ({ store }: DomainContext, caller: UserCaller): Promise<GatewaySettings> => {
  checkAdmin(caller);
  return readGatewaySettings(store);
};

/** Replaces the settings. Rejects with 403, and with 400 for an unknown provider. */
export const setGatewaySettings = async (
  { modelSettings }: DomainContext,
  caller: UserCaller,
  after: GatewaySettings,
): Promise<void> => {
  checkAdmin(caller);
  await modelSettings.changeGateway(after);
};

export type CallsQuery = {
  readonly user_id: string | undefined;
  readonly workspace_id: string | undefined;
  readonly before: number | undefined;
  readonly limit: number;
};

/** Returns gateway calls: the caller's own, or everyone's if an owner gives no `user_id`. Rejects with 403 for other users' calls. */
export const listGatewayCalls = async (
  { store }: DomainContext,
  caller: UserCaller,
  requested: CallsQuery,
): Promise<GatewayCalls> => {
  const user_id = toVisibleUserId(caller, requested.user_id);
  const rows = await store.scan(listCalls({ ...requested, user_id, limit: requested.limit + 1 }));
  const calls = rows.slice(0, requested.limit).map((row) => ({ ...row, created_at: toRfc3339(row.created_at) }));
  const last = rows.length > requested.limit ? calls.at(-1) : undefined;
  return { calls, ...(last ? { next_before: last.id } : {}) };
};

type UsageQuery = {
  readonly by: UsageDimension;
  readonly range: CostRange;
  /** Offset of the time zone from UTC in milliseconds; positive east of UTC. */
  readonly offset: number;
  readonly user_id: string | undefined;
};

/** Returns totals of the model calls in a time range, both of chats and of the gateway. Rejects with 403 for other users' calls. */
export const loadAiUsage = async (
  { store }: DomainContext,
  caller: UserCaller,
  { by, range, offset, user_id }: UsageQuery,
): Promise<AiUsage> => {
  const filter = { ...range, offset, user_id: toVisibleUserId(caller, user_id) };
  const rows = await store.scan(sumUsage(by, filter));
  // Each call has exactly one kind, and there are few kinds, so this sum includes each call once.
  const kinds = by === "kind" ? rows : await store.scan(sumUsage("kind", filter));
  const total = kinds.reduce((sum, row) => addUsage(sum, row), ZERO_SPEND);
  return { start_date: toRfc3339(range.from), end_date: toRfc3339(range.to), by, total, rows };
};

const addUsage = (sum: typeof ZERO_SPEND, row: UsageRow): typeof ZERO_SPEND => ({
  total_cost_micros: sum.total_cost_micros + row.total_cost_micros,
  request_count: sum.request_count + row.request_count,
  unpriced_request_count: sum.unpriced_request_count + row.unpriced_request_count,
  input_tokens: sum.input_tokens + row.input_tokens,
  output_tokens: sum.output_tokens + row.output_tokens,
  cache_read_tokens: sum.cache_read_tokens + row.cache_read_tokens,
  cache_creation_tokens: sum.cache_creation_tokens + row.cache_creation_tokens,
});

const toVisibleUserId = (caller: UserCaller, user_id: string | undefined): string | undefined => {
  if (canConfigureChats(caller)) return user_id;
  if (user_id === undefined || user_id === caller.user_id) return caller.user_id;
  throw forbidden("Only owners of the deployment can see the model calls of others.");
};
