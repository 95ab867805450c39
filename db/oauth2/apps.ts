// Applications that request access with OAuth 2, and their secrets.
import { and, asc, count, eq, lt, notExists, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { oauth2_app_secrets, oauth2_apps, oauth2_grants } from "../schema/oauth2.ts";

export type OAuth2AppRow = typeof oauth2_apps.$inferSelect;
export type OAuth2SecretRow = typeof oauth2_app_secrets.$inferSelect;

/** Applications that owners created, by name, then self-registered ones. */
export const listOAuth2Apps = query(
  build
    .select()
    .from(oauth2_apps)
    .orderBy(asc(oauth2_apps.self_registered), asc(sql`lower(${oauth2_apps.name})`), asc(oauth2_apps.id))
    .limit(2000),
);
export const findOAuth2App = findBy(oauth2_apps, oauth2_apps.id);
export const insertOAuth2App = insertInto(oauth2_apps);
export const updateOAuth2App = updateBy(oauth2_apps, oauth2_apps.id);
/** Deletes an application with its secrets and grants. The keys of the grants must be deleted before (`deleteKeysOfApp`). */
export const deleteOAuth2App = deleteBy(oauth2_apps, oauth2_apps.id);

export const countRegistered = query(
  build
    .select({ count: count().as("count") })
    .from(oauth2_apps)
    .where(eq(oauth2_apps.self_registered, true)),
);
export const countOAuth2Apps = query(
  build
    .select({ count: count().as("count") })
    .from(oauth2_apps)
    .where(eq(oauth2_apps.self_registered, false)),
);

/** Deletes applications that registered themselves before a time and have no grants. */
export const deleteUnusedRegistered = statement<{ before: number }>(
  build
    .delete(oauth2_apps)
    .where(
      and(
        eq(oauth2_apps.self_registered, true),
        lt(oauth2_apps.updated_at, sql.placeholder("before")),
        notExists(build.select({ one: sql`1` }).from(oauth2_grants).where(eq(oauth2_grants.app_id, oauth2_apps.id))),
      ),
    ),
);

/** The secrets of an application, oldest first. Parameters: {app_id}. */
export const listOAuth2Secrets = query(
  build
    .select()
    .from(oauth2_app_secrets)
    .where(eqParam(oauth2_app_secrets.app_id))
    .orderBy(asc(oauth2_app_secrets.created_at), asc(oauth2_app_secrets.id)),
);
/** One secret of an application. Parameters: {app_id, id}. */
export const findOAuth2Secret = findBy(oauth2_app_secrets, oauth2_app_secrets.app_id, oauth2_app_secrets.id);
export const insertOAuth2Secret = insertInto(oauth2_app_secrets);
export const updateOAuth2Secret = updateBy(oauth2_app_secrets, oauth2_app_secrets.id);
export const deleteOAuth2Secret = deleteBy(oauth2_app_secrets, oauth2_app_secrets.id);
