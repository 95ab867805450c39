// Parses the scopes an application requests: names from src/schema/users/scopes.ts, separated by spaces. Pure.
import { findScope, hasScope, isAccessScope } from "#schema/users/scopes.ts";
import { OAuth2Problem } from "./problem.ts";

/** Returns the requested scopes, limited to `allowed` (empty: unlimited); without a request, returns `allowed`. Throws `invalid_scope`. */
export const parseScopes = (text: string | undefined, allowed: readonly string[]): string[] => {
  const names = (text ?? "").split(" ").filter((one) => one !== "");
  if (names.length === 0 && allowed.length === 0) throw new OAuth2Problem("invalid_scope", "Name the scopes.");
  const requested = names.length === 0 ? [...allowed] : names.map(requireKnownScope);
  const beyond = allowed.length === 0 ? undefined : requested.find((scope) => !hasScope(allowed, scope));
  if (beyond !== undefined)
    throw new OAuth2Problem("invalid_scope", `The scope ${beyond} is not among the allowed scopes.`);
  return requested.includes("all") ? ["all"] : [...new Set(requested)];
};

/**
 * Returns the scopes of a refreshed token. Throws `invalid_scope` for a scope beyond the grant, and for one that changes who has access and
 * that the person did not see by its name.
 */
export const narrowScopes = (text: string | undefined, granted: readonly string[]): string[] => {
  const scopes = parseScopes(text, granted);
  const unnamed = scopes.find((scope) => isAccessScope(scope) && !granted.includes(scope));
  if (unnamed === undefined) return scopes;
  throw new OAuth2Problem("invalid_scope", `The scope ${unnamed} was not granted by its name.`);
};

const requireKnownScope = (name: string): string => {
  const scope = findScope(name);
  // Without the name, because it can be any text.
  if (scope === undefined) throw new OAuth2Problem("invalid_scope", "One of the scopes is unknown.");
  return scope;
};
