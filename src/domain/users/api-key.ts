// Finds a user's key, and presents keys.
import { toRfc3339 } from "#base/clock.ts";
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { type ApiKey as ApiKeyRow, findKey } from "#db/users/api-keys.ts";
import type { ApiKey } from "#schema/users/api-key.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { findScope, hasScope } from "#schema/users/scopes.ts";
import { canManageKeys } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { areWithin, parseNetworks } from "./allowed-addresses.ts";
import { findUserInPath, type KnownUser } from "./find.ts";
import { PREBUILDS_USER_ID } from "./first-user.ts";
import { GRANTED, isSignIn, listScopes } from "./keys.ts";

/** Returns the user in the path. Rejects with 404 when not visible, and with 403 when the caller may not manage their keys. */
export const loadKeysOwner = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await findUserInPath(ctx.store, text, caller);
  if (!canManageKeys(caller, user.id) || user.id === PREBUILDS_USER_ID) {
    throw forbidden("You may not manage this user's tokens.");
  }
  return user;
};

/** Returns a key of this user. Rejects with 404, also for another user's key. */
export const loadUserKey = async (ctx: DomainContext, user: KnownUser, id: string): Promise<ApiKeyRow> => {
  const key = await ctx.store.get(findKey({ id }));
  if (!key || key.user_id !== user.id) throw notFound();
  return key;
};

/** Presents a key, without its secret and hash. */
export const presentApiKey = (key: ApiKeyRow, username: string): ApiKey => ({
  id: key.id,
  user_id: key.user_id,
  username,
  token_name: key.token_name,
  login_type: key.login_type,
  ...(key.created_by === null ? {} : { created_by: key.created_by }),
  scope: listScopes(key).length === 1 ? (listScopes(key)[0] as string) : key.scope,
  scopes: [...listScopes(key)],
  allowed_addresses: key.allowed_addresses,
  lifetime_seconds: key.lifetime_seconds,
  created_at: toRfc3339(key.created_at),
  updated_at: toRfc3339(key.updated_at),
  last_used: toRfc3339(key.last_used),
  expires_at: toRfc3339(key.expires_at),
});

/** Returns the scopes requested by `scope` and `scopes` together; all scopes if neither is set. Throws 400 for unknown ones. */
export const parseScopeNames = (scope: string | undefined, scopes: readonly string[] = []): string[] => {
  const names = [...(scope ? [scope] : []), ...scopes].map((name) => {
    const knownScope = findScope(name);
    if (knownScope === undefined)
      throw invalidField("scopes", `"${name}" is not a scope; GET /api/v2/auth/scopes lists them.`);
    return knownScope;
  });
  return names.length === 0 ? ["all"] : [...new Set(names)];
};

/**
 * Returns the networks for a key that this caller creates or changes: never more than the caller's own key has. Throws 403 for more, and
 * for more scopes, because a narrow key could otherwise create a wide one (rule ID-22). Throws for an application, whose keys would outlive
 * its grant.
 */
export const requireWithinOwn = async (
  ctx: Pick<DomainContext, "store">,
  caller: UserCaller,
  requested: { readonly scopes: readonly string[]; readonly allowed_addresses: readonly string[] },
): Promise<string[]> => {
  const beyond = requested.scopes.find((scope) => !hasScope(caller.scopes, scope));
  if (beyond !== undefined) throw forbidden(`The token of this request can't grant the scope ${beyond}.`);
  const ownKey = await ctx.store.get(findKey({ id: caller.key_id }));
  if (ownKey?.login_type === GRANTED) throw forbidden("An application's token cannot create other tokens.");
  const ownNetworks = ownKey?.allowed_addresses ?? [];
  const networks = parseNetworks(requested.allowed_addresses);
  if (networks.length === 0) return ownNetworks;
  if (!areWithin(networks, ownNetworks)) throw forbidden("The token of this request is limited to fewer addresses.");
  return networks;
};

/**
 * Returns the maximum lifetime in seconds of a key that this caller creates: a token cannot create a key that outlives it. Infinite for a
 * sign-in session, and for an owner's unrestricted token that creates tokens for other users.
 */
export const computeSecondsLeft = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  caller: UserCaller,
  user_id: string,
): Promise<number> => {
  const ownKey = await store.get(findKey({ id: caller.key_id }));
  if (!ownKey || isSignIn(ownKey)) return Number.POSITIVE_INFINITY;
  const isUnrestricted = caller.scopes.includes("all") && ownKey.allowed_addresses.length === 0;
  if (isUnrestricted && user_id !== caller.user_id) return Number.POSITIVE_INFINITY;
  return Math.max(0, Math.floor((ownKey.expires_at - clock.now()) / 1000));
};

/**
 * Rejects with 403 if the key to change ends later than keys that the caller's token may create: its new access would outlive the token
 * (rule ID-22).
 */
export const requireNotOutlived = async (
  ctx: Pick<DomainContext, "store" | "clock">,
  caller: UserCaller,
  key: ApiKeyRow,
): Promise<void> => {
  const seconds = await computeSecondsLeft(ctx, caller, key.user_id);
  if (Math.floor((key.expires_at - ctx.clock.now()) / 1000) <= seconds) return;
  throw forbidden("The token to change ends later than the token of this request, which can't give it more access.");
};
