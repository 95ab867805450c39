// Spend limits as administrators have set them, values of the table `settings`: everybody's, and those of users and groups.
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { deleteSetting, findSetting, listSettings, putSetting } from "../settings.ts";

/** Micros; null: no limit. `updated_at` in milliseconds since 1970, null while nobody has set it. */
export type UsageLimit = {
  readonly spend_limit_micros: number | null;
  readonly period: UsagePeriod;
  readonly updated_at: number | null;
};

const DEFAULT: UsageLimit = { spend_limit_micros: null, period: "month", updated_at: null };
const KEY = "chat_usage_limit";

/** Whose limit it is. The group of an organization's members has the organization's id. */
export type LimitOwner = "user" | "group";

const keyOf = (owner: LimitOwner, id: string): string => `${KEY}_${owner}:${id}`;

export const readUsageLimit = async (store: Store): Promise<UsageLimit> => {
  const row = await store.get(findSetting({ key: KEY }));
  return row ? (JSON.parse(row.value) as UsageLimit) : DEFAULT;
};

export const putUsageLimit = (limit: UsageLimit): Statement => putSetting({ key: KEY, value: JSON.stringify(limit) });

/** Micros; undefined: no limit of its own. */
export const readLimitOf = async (store: Store, owner: LimitOwner, id: string): Promise<number | undefined> => {
  const row = await store.get(findSetting({ key: keyOf(owner, id) }));
  return row && Number(row.value);
};

export const readUserLimit = (store: Store, user_id: string) => readLimitOf(store, "user", user_id);
export const readGroupLimit = (store: Store, group_id: string) => readLimitOf(store, "group", group_id);

export const putLimitOf = (owner: LimitOwner, id: string, micros: number): Statement =>
  putSetting({ key: keyOf(owner, id), value: String(micros) });

export const deleteLimitOf = (owner: LimitOwner, id: string): Statement => deleteSetting(keyOf(owner, id));

/** All of one kind: ids with their micros. */
export const listLimits = async (store: Store, owner: LimitOwner): Promise<{ id: string; micros: number }[]> => {
  const from = keyOf(owner, "");
  // The colon at the end of the prefix comes just before the semicolon.
  const rows = await store.all(listSettings({ from, to: `${from.slice(0, -1)};` }));
  return rows.map(({ key, value }) => ({ id: key.slice(from.length), micros: Number(value) }));
};
