// Enforces the scopes of API keys for every operation before routing (rule ID-21): routes that require a caller reject the sender, and
// public routes answer as usual.
import { forbidden } from "#base/errors.ts";
import { hasScope } from "#schema/users/scopes.ts";
import { findSender, type Identity, ScopeRefused, type UserCaller } from "./caller.ts";
import { getPath } from "./errors.ts";
import type { ScopeNeed } from "./operation.ts";
import { type Operations, parseVariables } from "./operations.ts";

/**
 * Returns the identity, or the error when the key's scopes do not cover the operation. An operation that declares no scope, and a path that
 * belongs to no operation, require a key with full access. An application's full access does not cover changes of who has access, nor
 * what outlives its grant.
 */
export const enforceScope = (request: Request, identity: Identity, operations: Operations): Identity => {
  const caller = findSender(identity);
  if (caller?.kind !== "user") return identity;
  const hasFullAccess = caller.scopes.includes("all");
  if (hasFullAccess && !caller.is_application) return identity;
  const path = getPath(request.url);
  const operation = operations.find(request.method === "HEAD" ? "GET" : request.method, path);
  const needed = hasFullAccess ? "any" : findNeededScope(operation, path);
  if (!isGranted(caller.scopes, needed)) return new ScopeRefused(caller, formatScopeNeed(needed));
  if (!caller.is_application) return identity;
  const { changesAccess: access, outlivesGrant } = operation?.declared ?? {};
  if (outlivesGrant) return new ScopeRefused(caller, OWN_KEY_FOR_LATER);
  if (access === undefined || caller.scopes.includes(access)) return identity;
  return new ScopeRefused(caller, access === "never" ? OWN_KEY : `the scope ${access} by its own name`);
};

const OWN_KEY = "your own sign-in or token: applications can't change who has access";

const OWN_KEY_FOR_LATER = "your own sign-in or token: it would outlive the application's authorization";

const findNeededScope = (operation: ReturnType<Operations["find"]>, path: string): ScopeNeed => {
  const { scope = "all", scopeForSelf = scope } = operation?.declared ?? {};
  return operation && parseVariables(operation, path).user === "me" ? scopeForSelf : scope;
};

/** Returns the required scopes as text: `workspace:start or workspace:stop`. */
export const formatScopeNeed = (needed: ScopeNeed): string => {
  if (needed === "all") return "a key for everything";
  if (typeof needed === "string") return needed;
  return "oneOf" in needed ? needed.oneOf.join(" or ") : needed.join(" ");
};

const isGranted = (scopes: readonly string[], needed: ScopeNeed): boolean => {
  if (needed === "all") return false;
  if (needed === "any") return scopes.some((scope) => scope !== "application_connect");
  if (typeof needed === "string") return hasScope(scopes, needed);
  return "oneOf" in needed
    ? needed.oneOf.some((scope) => hasScope(scopes, scope))
    : needed.every((scope) => hasScope(scopes, scope));
};

/** Checks a scope that depends on the request's body. Throws 403. */
export const requireScope = (caller: Pick<UserCaller, "scopes">, needed: string): void => {
  if (!hasScope(caller.scopes, needed)) throw forbidden(`This requires a key with the scope ${needed}.`);
};
