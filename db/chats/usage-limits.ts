// Spend limits that administrators set, stored in the table `settings`: the general limit, and those of users and groups.
import { sql } from "drizzle-orm";
import type { UsagePeriod } from "#schema/chats/usage-limit.ts";
import { build, query, type Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { settings } from "../schema/core.ts";
import { group_members } from "../schema/groups.ts";
import { organization_members } from "../schema/users.ts";
import { deleteSetting, findSetting, listSettings, upsertSetting } from "../settings.ts";

/** The limit in micros; null: no limit. `updated_at` in milliseconds since 1970; null if the limit was never set. */
export type UsageLimit = {
  readonly spend_limit_micros: number | null;
  readonly period: UsagePeriod;
  readonly updated_at: number | null;
};

const DEFAULT: UsageLimit = { spend_limit_micros: null, period: "month", updated_at: null };
const SETTING_KEY = "chat_usage_limit";

/** The kind of the limit's owner. The group of all members of an organization has the organization's ID. */
export type LimitOwner = "user" | "group";

const toKey = (owner: LimitOwner, id: string): string => `${SETTING_KEY}_${owner}:${id}`;
/** The prefix of the keys of one kind, as a literal in the statement. */
const kindLiteral = (owner: LimitOwner) => sql.raw(`'${toKey(owner, "")}'`);

export const readUsageLimit = async (store: Store): Promise<UsageLimit> => {
  const row = await store.get(findSetting({ key: SETTING_KEY }));
  return row ? (JSON.parse(row.value) as UsageLimit) : DEFAULT;
};

export const upsertUsageLimit = (limit: UsageLimit): Statement =>
  upsertSetting({ key: SETTING_KEY, value: JSON.stringify(limit) });

/** Returns the limit in micros; undefined without an individual limit. */
export const readLimit = async (store: Store, owner: LimitOwner, id: string): Promise<number | undefined> => {
  const row = await store.get(findSetting({ key: toKey(owner, id) }));
  return row && Number(row.value);
};

/** The limits on one user (the general one, the user's own and those of their groups) in one read, because every model call needs them. */
const listLimitsOn = query(
  build
    .select()
    .from(settings)
    .where(
      sql`${settings.key} in (select ${sql.raw(`'${SETTING_KEY}'`)} union all select ${kindLiteral("user")} || cast(${sql.placeholder("user_id")} as text)
        union all select ${kindLiteral("group")} || organization_id from ${organization_members} where user_id = ${sql.placeholder("user_id")}
        union all select ${kindLiteral("group")} || group_id from ${group_members} where user_id = ${sql.placeholder("user_id")})`,
    ),
);

/** `own`: the user's individual limit, or else the lowest limit of the user's groups; undefined without a limit. */
export const readLimitsOn = async (
  store: Pick<Store, "all">,
  user_id: string,
): Promise<{ readonly everybody: UsageLimit; readonly own: number | undefined }> => {
  const found = new Map((await store.all(listLimitsOn({ user_id }))).map(({ key, value }) => [key, value]));
  const [general, user] = [found.get(SETTING_KEY), found.get(toKey("user", user_id))];
  const groups = [...found].filter(([key]) => key.startsWith(toKey("group", ""))).map(([, value]) => Number(value));
  const lowest = groups.length === 0 ? undefined : Math.min(...groups);
  return {
    everybody: general === undefined ? DEFAULT : (JSON.parse(general) as UsageLimit),
    own: user === undefined ? lowest : Number(user),
  };
};

export const upsertLimit = (owner: LimitOwner, id: string, micros: number): Statement =>
  upsertSetting({ key: toKey(owner, id), value: String(micros) });

export const deleteLimit = (owner: LimitOwner, id: string): Statement => deleteSetting(toKey(owner, id));

/** Returns all limits of one kind: the IDs of their owners, and the limits in micros. */
export const listLimits = async (store: Store, owner: LimitOwner): Promise<{ id: string; micros: number }[]> => {
  const from = toKey(owner, "");
  // The end of the range of keys: `;` is the character after `:`, with which the prefix ends.
  const rows = await store.all(listSettings({ from, to: `${from.slice(0, -1)};` }));
  return rows.map(({ key, value }) => ({ id: key.slice(from.length), micros: Number(value) }));
};
