// Deployment-wide values that are made once.
import { eq, sql } from "drizzle-orm";
import { uuid } from "#base/ids.ts";
import { settings } from "./schema/core.ts";
import { build, insertInto, query, statement } from "./sql.ts";
import type { Store } from "./store.ts";

/** {key}. */
export const findSetting = query(
  build
    .select()
    .from(settings)
    .where(eq(settings.key, sql.placeholder("key"))),
);
const setOnce = statement<{ key: string; value: string }>(
  build
    .insert(settings)
    .values({ key: sql.placeholder("key"), value: sql.placeholder("value") })
    .onConflictDoNothing(),
);

/** A value that may be set only once: a second insert is refused as `constraint`. */
export const insertSetting = insertInto(settings);

/** The id of this deployment, made on the first call. */
export const deploymentId = async (store: Store): Promise<string> => {
  const found = await store.get(findSetting({ key: "deployment_id" }));
  if (found) return found.value;
  await store.commit([setOnce({ key: "deployment_id", value: uuid() })]);
  return deploymentId(store);
};
