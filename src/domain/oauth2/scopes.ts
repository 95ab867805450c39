// Parses the scopes an application requests: names from src/schema/users/scopes.ts, separated by spaces. Pure.
import { findScope, hasScope, isAccessScope } from "#schema/users/scopes.ts";
import { OAuth2Problem } from "./problem.ts";

/** Returns the requested scopes, limited to `most` (empty: unlimited); without a request, returns `most`. Throws `invalid_scope`. */
export const parseScopes = (text: string | undefined, most: readonly string[]): string[] => {
  const names = (text ?? "").split(" ").filter((one) => one !== "");
  if (names.length === 0 && most.length === 0) throw new OAuth2Problem("invalid_scope", "Name the scopes.");
  const requested = names.length === 0 ? [...most] : names.map(requireKnownScope);
  const beyond = most.length === 0 ? undefined : requested.find((scope) => !hasScope(most, scope));
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
  const unseen = scopes.find((scope) => isAccessScope(scope) && !granted.includes(scope));
  if (unseen === undefined) return scopes;
  throw new OAuth2Problem("invalid_scope", `The scope ${unseen} was not granted by its name.`);
};

const requireKnownScope = (name: string): string => {
  const scope = findScope(name);
  // Without the name, because it can be any text.
  if (scope === undefined) throw new OAuth2Problem("invalid_scope", "One of the scopes is unknown.");
  return scope;
};
