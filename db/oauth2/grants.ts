// Access that people granted to applications. A grant is deleted with its key.
import { and, desc, eq, inArray, isNotNull, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, statement } from "../engine/sql.ts";
import { oauth2_apps, oauth2_grants } from "../schema/oauth2.ts";
import { api_keys } from "../schema/users.ts";

export type OAuth2GrantRow = typeof oauth2_grants.$inferSelect;

export const insertOAuth2Grant = insertInto(oauth2_grants, { alone: "grants" });
export const findGrant = findBy(oauth2_grants, oauth2_grants.key_id);
export const findGrantByCode = findBy(oauth2_grants, oauth2_grants.code_hash);
export const findGrantByFamily = findBy(oauth2_grants, oauth2_grants.family_hash);

/** A user's grants with their applications, newest first, except those whose code was never redeemed. Parameters: {user_id}. */
export const listGrants = query(
  build
    .select({ grant: oauth2_grants, app: oauth2_apps, key: api_keys })
    .from(oauth2_grants)
    .innerJoin(oauth2_apps, eq(oauth2_apps.id, oauth2_grants.app_id))
    .innerJoin(api_keys, eq(api_keys.id, oauth2_grants.key_id))
    .where(and(eqParam(oauth2_grants.user_id), isNotNull(oauth2_grants.redeemed_at)))
    .orderBy(desc(oauth2_grants.created_at), desc(oauth2_grants.key_id))
    .limit(200),
);

/** All grants of a user, including those whose code is not yet redeemed. Parameters: {user_id}. */
export const listGrantIds = query(
  build.select({ key_id: oauth2_grants.key_id }).from(oauth2_grants).where(eqParam(oauth2_grants.user_id)).limit(1000),
);

/** All grants of an application. Parameters: {app_id}. */
export const listKeysOfApp = query(
  build
    .select({ key_id: oauth2_grants.key_id })
    .from(oauth2_grants)
    .where(eqParam(oauth2_grants.app_id))
    .limit(100_000),
);

/** Exchanges a code for tokens, once. Rejected as `stale` the second time. */
export const redeemGrant = statement<{
  key_id: string;
  now: number;
  family_hash: string;
  refresh_hash: string;
  refresh_expires_at: number;
}>(
  build
    .update(oauth2_grants)
    .set({
      redeemed_at: sql.placeholder("now") as never,
      updated_at: sql.placeholder("now") as never,
      family_hash: sql.placeholder("family_hash") as never,
      refresh_hash: sql.placeholder("refresh_hash") as never,
      refresh_expires_at: sql.placeholder("refresh_expires_at") as never,
    })
    .where(and(eqParam(oauth2_grants.key_id), isNull(oauth2_grants.redeemed_at))),
  { expect: 1 },
);

/** Replaces the known refresh token. Rejected as `stale` when it was replaced concurrently. */
export const rotateGrant = statement<{
  key_id: string;
  now: number;
  known_hash: string;
  refresh_hash: string;
  refresh_expires_at: number;
}>(
  build
    .update(oauth2_grants)
    .set({
      updated_at: sql.placeholder("now") as never,
      refresh_hash: sql.placeholder("refresh_hash") as never,
      refresh_expires_at: sql.placeholder("refresh_expires_at") as never,
    })
    .where(and(eqParam(oauth2_grants.key_id), eq(oauth2_grants.refresh_hash, sql.placeholder("known_hash")))),
  { expect: 1 },
);

/** Builds a statement that deletes the keys, and with them the grants, that the condition selects. */
const deleteGrants = <Values extends Record<string, unknown>>(
  condition: SQL | undefined,
  options?: { alone: "grants" },
) =>
  statement<Values>(
    build
      .delete(api_keys)
      .where(inArray(api_keys.id, build.select({ key_id: oauth2_grants.key_id }).from(oauth2_grants).where(condition))),
    options,
  );

/** Deletes the keys, and with them the grants, of an application. */
export const deleteKeysOfApp = deleteGrants<{ app_id: string }>(eqParam(oauth2_grants.app_id), { alone: "grants" });

/** Deletes the grants that a user has approved for an application and whose codes the application has not redeemed yet. */
export const deletePendingGrants = deleteGrants<{ user_id: string; app_id: string }>(
  and(eqParam(oauth2_grants.user_id), eqParam(oauth2_grants.app_id), isNull(oauth2_grants.redeemed_at)),
);

/** Deletes a user's expired grants: the code was not redeemed in time, or the refresh token was not used. */
export const deleteLapsedGrants = deleteGrants<{ user_id: string; now: number }>(
  and(
    eqParam(oauth2_grants.user_id),
    or(
      and(isNull(oauth2_grants.redeemed_at), lt(oauth2_grants.code_expires_at, sql.placeholder("now"))),
      lt(oauth2_grants.refresh_expires_at, sql.placeholder("now")),
    ),
  ),
);
