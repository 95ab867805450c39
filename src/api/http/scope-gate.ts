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
 * belongs to no operation, require a key with full access.
 */
export const enforceScope = (request: Request, identity: Identity, operations: Operations): Identity => {
  const caller = findSender(identity);
  if (caller?.kind !== "user" || caller.scopes.includes("all")) return identity;
  const method = request.method === "HEAD" ? "GET" : request.method;
  const needed = findNeed(operations, method, getPath(request.url));
  return isGranted(caller.scopes, needed) ? identity : new ScopeRefused(caller, formatScopeNeed(needed));
};

const findNeed = (operations: Operations, method: string, path: string): ScopeNeed => {
  const operation = operations.find(method, path);
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
    ? needed.oneOf.some((one) => hasScope(scopes, one))
    : needed.every((one) => hasScope(scopes, one));
};

/** Checks a scope that depends on the request's body. Throws 403. */
export const requireScope = (caller: Pick<UserCaller, "scopes">, needed: string): void => {
  if (!hasScope(caller.scopes, needed)) throw forbidden(`This takes a key with the scope ${needed}.`);
};
