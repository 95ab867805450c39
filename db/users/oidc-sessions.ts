// Data from the OpenID Connect provider about sessions that were started by signing in through it.
import { and, asc, eq, gt, lt, ne, sql } from "drizzle-orm";
import { build, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { oidc_sessions } from "../schema/oidc-links.ts";
import { api_keys } from "../schema/users.ts";

export type OidcSession = typeof oidc_sessions.$inferSelect;

/** Parameters: {key_id}. */
export const findOidcSession = findBy(oidc_sessions, oidc_sessions.key_id);

export const insertOidcSession = insertInto(oidc_sessions);
export const updateOidcSession = updateBy(oidc_sessions, oidc_sessions.key_id);

/** Sessions with a refresh token that were used since the provider was last asked, oldest first. Parameters: {before, now}. */
export const listDueOidcSessions = query(
  build
    .select({ session: oidc_sessions, user_id: api_keys.user_id })
    .from(oidc_sessions)
    .innerJoin(api_keys, eq(api_keys.id, oidc_sessions.key_id))
    .where(
      and(
        eq(oidc_sessions.has_refresh_token, true),
        lt(oidc_sessions.checked_at, sql.placeholder("before")),
        gt(api_keys.expires_at, sql.placeholder("now")),
        gt(api_keys.last_used, oidc_sessions.checked_at),
      ),
    )
    .orderBy(asc(oidc_sessions.checked_at))
    .limit(50),
);

/** Another session of the user that the provider has confirmed lately. Parameters: {key_id, user_id, since, now}. */
export const findOtherOidcSession = query(
  build
    .select({ key_id: oidc_sessions.key_id })
    .from(oidc_sessions)
    .innerJoin(api_keys, eq(api_keys.id, oidc_sessions.key_id))
    .where(
      and(
        eqParam(api_keys.user_id),
        ne(oidc_sessions.key_id, sql.placeholder("key_id")),
        eq(oidc_sessions.has_refresh_token, true),
        gt(oidc_sessions.checked_at, sql.placeholder("since")),
        gt(api_keys.expires_at, sql.placeholder("now")),
      ),
    )
    .limit(1),
);

/** Claims a session for one check. Rejected as `stale` when another node has claimed it. */
export const claimOidcSession = statement<{ key_id: string; known_checked_at: number; now: number }>(
  build
    .update(oidc_sessions)
    .set({ checked_at: sql.placeholder("now") as never })
    .where(and(eqParam(oidc_sessions.key_id), eq(oidc_sessions.checked_at, sql.placeholder("known_checked_at")))),
  { expect: 1 },
);
