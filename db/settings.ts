// Deployment-wide values: some are written once, others can be changed.
import { and, gte, lt, sql } from "drizzle-orm";
import { uuid } from "#base/ids.ts";
import { build, deleteBy, findBy, insertInto, query, statement } from "./engine/sql.ts";
import type { Store } from "./engine/store.ts";
import { settings } from "./schema/core.ts";

/** Parameters: {key}. */
export const findSetting = findBy(settings, settings.key);
const setOnce = statement<{ key: string; value: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: sql.placeholder("value") })
    .onConflictDoNothing(),
);

/** Inserts a value that can be set only once. A second insert is rejected as `constraint`. */
export const insertSetting = insertInto(settings);

/** Sets or replaces a value. */
export const upsertSetting = statement<{ key: string; value: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: sql.placeholder("value") })
    .onConflictDoUpdate({ target: settings.key, set: { value: sql`excluded.value` } }),
);

/** {keys}: a JSON array. */
export const findSettings = query(
  build
    .select()
    .from(settings)
    .where(sql`${settings.key} in (select value from json_each(${sql.placeholder("keys")}))`),
);

/** Keys from `from` up to, but excluding, `to`. Parameters: {from, to}. */
export const listSettings = query(
  build
    .select()
    .from(settings)
    .where(and(gte(settings.key, sql.placeholder("from")), lt(settings.key, sql.placeholder("to")))),
);

export const deleteSetting = deleteBy(settings, settings.key);

/** Returns the ID of this deployment, creating it on the first call. */
export const loadDeploymentId = async (store: Store): Promise<string> => {
  const found = await store.get(findSetting({ key: "deployment_id" }));
  if (found) return found.value;
  await store.commit([setOnce({ key: "deployment_id", value: uuid() })]);
  return loadDeploymentId(store);
};
