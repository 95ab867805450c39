// Refuses what the scopes of a key do not take in, for every operation and before it is routed (rule ID-21): who sent the request is then
// nobody for routes that need somebody, and public ones answer as ever.
import { forbidden } from "#base/errors.ts";
import { allows } from "#schema/users/scopes.ts";
import { type Identity, ScopeRefused, somebodyIn, type UserCaller } from "./caller.ts";
import { pathOf } from "./errors.ts";
import { ANY, scopeFor } from "./scope-rules.ts";

/** The identity, or the refusal of what its key may not be used for. */
export const withinScope = (request: Request, identity: Identity): Identity => {
  const caller = somebodyIn(identity);
  if (caller?.kind !== "user" || caller.scopes.includes("all")) return identity;
  const needed = scopeFor(request.method, pathOf(request.url));
  return needed !== undefined && isGranted(caller.scopes, needed) ? identity : new ScopeRefused(caller, needed);
};

const isGranted = (scopes: readonly string[], needed: string): boolean => {
  if (needed === ANY) return scopes.some((scope) => scope !== "application_connect");
  return needed.split(" ").every((part) => part.split("|").some((one) => allows(scopes, one)));
};

/** For what only the body of a request tells. Throws 403. */
export const mustHaveScope = (caller: Pick<UserCaller, "scopes">, needed: string): void => {
  if (!allows(caller.scopes, needed)) throw forbidden(`This takes a key with the scope ${needed}.`);
};
