// Refuses what the scopes of a key do not take in, for every operation and before it is routed (rule ID-21): the sender is then unknown to
// routes that need one, and public ones answer as ever.
import { forbidden } from "#base/errors.ts";
import { allows } from "#schema/users/scopes.ts";
import { type Identity, ScopeRefused, somebodyIn, type UserCaller } from "./caller.ts";
import { getPath } from "./errors.ts";
import type { ScopeNeed } from "./operation.ts";
import { type Operations, variablesIn } from "./operations.ts";

/** The identity, or the refusal of what its key may not be used for. What no operation declares takes a key for everything. */
export const withinScope = (request: Request, identity: Identity, operations: Operations): Identity => {
  const caller = somebodyIn(identity);
  if (caller?.kind !== "user" || caller.scopes.includes("all")) return identity;
  const method = request.method === "HEAD" ? "GET" : request.method;
  const needed = findNeed(operations, method, getPath(request.url));
  return isGranted(caller.scopes, needed) ? identity : new ScopeRefused(caller, scopeWords(needed));
};

const findNeed = (operations: Operations, method: string, path: string): ScopeNeed => {
  const operation = operations.find(method, path);
  const { scope = "all", scopeForSelf = scope } = operation?.declared ?? {};
  return operation && variablesIn(operation, path).user === "me" ? scopeForSelf : scope;
};

/** What a key needs, in words: `workspace:start or workspace:stop`. */
export const scopeWords = (needed: ScopeNeed): string => {
  if (needed === "all") return "a key for everything";
  if (typeof needed === "string") return needed;
  return "oneOf" in needed ? needed.oneOf.join(" or ") : needed.join(" ");
};

const isGranted = (scopes: readonly string[], needed: ScopeNeed): boolean => {
  if (needed === "all") return false;
  if (needed === "any") return scopes.some((scope) => scope !== "application_connect");
  if (typeof needed === "string") return allows(scopes, needed);
  return "oneOf" in needed
    ? needed.oneOf.some((one) => allows(scopes, one))
    : needed.every((one) => allows(scopes, one));
};

/** For what only the body of a request tells. Throws 403. */
export const mustHaveScope = (caller: Pick<UserCaller, "scopes">, needed: string): void => {
  if (!allows(caller.scopes, needed)) throw forbidden(`This takes a key with the scope ${needed}.`);
};
