// Statements and queries for the store's tests, on tables of the product.
import { asc, eq, sql } from "drizzle-orm";
import { build, deleteBy, insertInto, query, statement, updateBy } from "#db/engine/sql.ts";
import { settings } from "#db/schema/core.ts";
import { users } from "#db/schema/users.ts";

export const insertSetting = insertInto(settings);
export const changeSetting = updateBy(settings, settings.key);
export const deleteSetting = deleteBy(settings, settings.key);
export const upsertSetting = statement<{ key: string; value: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: sql.placeholder("value") })
    .onConflictDoUpdate({ target: settings.key, set: { value: sql`excluded.value` } }),
);
/** Changes the value only if it is still `from`. */
export const swapSetting = statement<{ key: string; from: string; to: string }>(
  build
    .update(settings)
    .set({ value: sql`${sql.placeholder("to")}` })
    .where(sql`${settings.key} = ${sql.placeholder("key")} and ${settings.value} = ${sql.placeholder("from")}`),
  { expect: 1 },
);

export const findSetting = query(
  build
    .select()
    .from(settings)
    .where(eq(settings.key, sql.placeholder("key"))),
);
/** Returns every setting by key. */
export const listSettings = query(build.select().from(settings).orderBy(asc(settings.key)));

export const insertUser = insertInto(users);
export const makeUser = (username: string): typeof users.$inferInsert => ({
  id: `id-of-${username}`,
  email: `${username}@example.com`,
  username,
  status: "active",
  login_type: "password",
  created_at: 1,
  updated_at: 1,
});
