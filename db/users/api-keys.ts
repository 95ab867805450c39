// API keys: sign-ins and tokens. Only the hash of a secret is stored (facts/platform 8.2).
import { and, asc, desc, eq, exists, getTableColumns, gt, ne, notInArray, or, sql } from "drizzle-orm";
import { build, deleteBy, eqParam, findBy, insertInto, query, statement, updateBy } from "../engine/sql.ts";
import { passkeys, totp_factors } from "../schema/second-factors.ts";
import { api_keys, users } from "../schema/users.ts";

export type ApiKey = typeof api_keys.$inferSelect;

/** Whether the user of the row has a second factor. */
export const hasSecondFactor = or(
  exists(build.select({ one: sql`1` }).from(totp_factors).where(eq(totp_factors.user_id, users.id))),
  exists(build.select({ one: sql`1` }).from(passkeys).where(eq(passkeys.user_id, users.id))),
);

/** A key with its user, for authenticating a request. */
export const findKeyWithUser = query(
  build
    .select({
      key_id: api_keys.id,
      secret_hash: api_keys.secret_hash,
      scope: api_keys.scope,
      scopes: api_keys.scopes,
      allowed_addresses: api_keys.allowed_addresses,
      ip_address: api_keys.ip_address,
      login_type: api_keys.login_type,
      lifetime_seconds: api_keys.lifetime_seconds,
      created_at: api_keys.created_at,
      last_used: api_keys.last_used,
      expires_at: api_keys.expires_at,
      parent_id: api_keys.parent_id,
      workspace_id: api_keys.workspace_id,
      user_id: users.id,
      username: users.username,
      status: users.status,
      roles: users.roles,
      deleted: users.deleted,
      user_login_type: users.login_type,
      second_factor_required: users.second_factor_required,
      has_second_factor: sql<boolean>`${hasSecondFactor}`.mapWith(Boolean).as("has_second_factor"),
    })
    .from(api_keys)
    .innerJoin(users, eq(users.id, api_keys.user_id))
    .where(eqParam(api_keys.id)),
);

export const findKey = findBy(api_keys, api_keys.id);

export const findKeyByName = query(
  build
    .select()
    .from(api_keys)
    .where(and(eqParam(api_keys.user_id), eq(api_keys.token_name, sql.placeholder("name")))),
);

/** A user's tokens (not sign-ins) that expire after `now`, oldest first. 0 includes expired ones. */
export const listTokens = query(
  build
    .select()
    .from(api_keys)
    .where(
      and(eqParam(api_keys.user_id), eq(api_keys.login_type, "token"), gt(api_keys.expires_at, sql.placeholder("now"))),
    )
    .orderBy(asc(api_keys.created_at), asc(api_keys.id))
    .limit(1000),
);

/** Everyone's tokens, with the names of their owners. 0 includes expired ones. For `store.scan`. */
export const listAllTokens = query(
  build
    .select({ key: api_keys, username: users.username })
    .from(api_keys)
    .innerJoin(users, eq(users.id, api_keys.user_id))
    .where(
      and(eq(api_keys.login_type, "token"), gt(api_keys.expires_at, sql.placeholder("now")), eq(users.deleted, false)),
    )
    .orderBy(asc(api_keys.created_at), asc(api_keys.id))
    .limit(10_000),
);

/** Data to recognize this user's keys, newest first. Parameters: {user_id}. */
export const listKeyHashes = query(
  build
    .select({ id: api_keys.id, secret_hash: api_keys.secret_hash })
    .from(api_keys)
    .where(eqParam(api_keys.user_id))
    .orderBy(desc(api_keys.created_at))
    .limit(1000),
);

/** Keys that this person has created for other people, without those of service accounts. Parameters: {created_by}. */
export const listKeysCreatedBy = query(
  build
    .select(getTableColumns(api_keys))
    .from(api_keys)
    .innerJoin(users, eq(users.id, api_keys.user_id))
    .where(and(eqParam(api_keys.created_by), ne(users.login_type, sql`'none'`)))
    .limit(10_000),
);

export const insertKey = insertInto(api_keys);
export const updateKey = updateBy(api_keys, api_keys.id);

/** Records the use of a key, unless it was revoked or changed concurrently. */
export const touchKey = statement<{
  id: string;
  now: number;
  expires_at: number;
  known_expires_at: number;
  ip_address: string;
  user_agent: string;
}>(
  build
    .update(api_keys)
    .set({
      last_used: sql.placeholder("now") as never,
      updated_at: sql.placeholder("now") as never,
      expires_at: sql.placeholder("expires_at") as never,
      ip_address: sql.placeholder("ip_address") as never,
      user_agent: sql.placeholder("user_agent") as never,
    })
    .where(and(eqParam(api_keys.id), eq(api_keys.expires_at, sql.placeholder("known_expires_at")))),
);

/** A guard: rejects the batch as `stale` when this key was revoked, so that it cannot create others. */
export const guardKey = statement<{ id: string; now: number }>(
  build
    .update(api_keys)
    .set({ id: sql`${api_keys.id}` })
    .where(and(eqParam(api_keys.id), gt(api_keys.expires_at, sql.placeholder("now")))),
  { expect: 1 },
);

export const deleteKey = deleteBy(api_keys, api_keys.id);

/** The condition that a sign-in created the key, not the tokens page or an application. */
const isOfSignIn = notInArray(api_keys.login_type, ["token", "oauth2_provider_app"]);
const isSession = and(isOfSignIn, eq(api_keys.scope, "all"));

/** A user's valid sign-ins, most recently used first, without the keys that they created for hosts of single apps. */
export const listSessions = query(
  build
    .select()
    .from(api_keys)
    .where(and(eqParam(api_keys.user_id), isSession, gt(api_keys.expires_at, sql.placeholder("now"))))
    .orderBy(desc(api_keys.last_used), asc(api_keys.id))
    .limit(1000),
);

/** Ends every sign-in of a user except `except`. Keeps tokens and grants of applications. */
export const deleteSessionsByUser = statement<{ user_id: string; except: string }>(
  build.delete(api_keys).where(and(eqParam(api_keys.user_id), isOfSignIn, ne(api_keys.id, sql.placeholder("except")))),
);

/** Revokes every key of a user except `except`, for example after a password change. */
export const deleteKeysByUser = statement<{ user_id: string; except: string }>(
  build
    .delete(api_keys)
    .where(sql`${api_keys.user_id} = ${sql.placeholder("user_id")} and ${api_keys.id} <> ${sql.placeholder("except")}`),
);
