// Finding a key within its user, and showing keys.
import { rfc3339 } from "#base/clock.ts";
import { forbidden, invalidField, notFound } from "#base/errors.ts";
import { type ApiKey as ApiKeyRow, findKey } from "#db/users/api-keys.ts";
import { type ApiKey, KEY_SCOPES, type KeyScope } from "#schema/api-key.ts";
import type { UserCaller } from "#schema/caller.ts";
import { mayManageKeysOf } from "../access.ts";
import type { DomainContext } from "../context.ts";
import { PREBUILDS_USER_ID } from "./first-user.ts";
import { type KnownUser, userAt } from "./user.ts";

/** The user whose keys the path speaks of: 404 when not visible, 403 when the caller may not handle them. */
export const keysOwnerAt = async (ctx: DomainContext, text: string, caller: UserCaller): Promise<KnownUser> => {
  const user = await userAt(ctx.store, text, caller);
  if (!mayManageKeysOf(caller, user.id) || user.id === PREBUILDS_USER_ID) {
    throw forbidden("You may not handle this user's keys.");
  }
  return user;
};

/** A key of this user; another user's is as good as none. */
export const keyAt = async (ctx: DomainContext, user: KnownUser, id: string): Promise<ApiKeyRow> => {
  const key = await ctx.store.get(findKey({ id }));
  if (!key || key.user_id !== user.id) throw notFound();
  return key;
};

/** The key as callers see it; never its secret or the hash of it. */
export const showKey = (key: ApiKeyRow, username: string): ApiKey => ({
  id: key.id,
  user_id: key.user_id,
  username,
  token_name: key.token_name,
  login_type: key.login_type,
  scope: key.scope,
  scopes: [key.scope],
  lifetime_seconds: key.lifetime_seconds,
  created_at: rfc3339(key.created_at),
  updated_at: rfc3339(key.updated_at),
  last_used: rfc3339(key.last_used),
  expires_at: rfc3339(key.expires_at),
});

/** The one scope that `scope` and `scopes` ask for together. 400 for unknown ones. */
export const scopeOf = (scope: string | undefined, scopes: readonly string[] | undefined): KeyScope => {
  const asked = [...(scope ? [scope] : []), ...(scopes ?? [])].map((one) => one.replace(/^coder:/, ""));
  const unknown = asked.find((one) => !(KEY_SCOPES as readonly string[]).includes(one));
  if (unknown !== undefined) throw invalidField("scopes", `"${unknown}" is not one of ${KEY_SCOPES.join(", ")}.`);
  return asked.length > 0 && asked.every((one) => one === "application_connect") ? "application_connect" : "all";
};
