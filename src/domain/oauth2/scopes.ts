// Parses the scopes an application requests: names from src/schema/users/scopes.ts, separated by spaces. Pure.
import { allows, scopeNamed } from "#schema/users/scopes.ts";
import { OAuth2Problem } from "./problem.ts";

/** Returns the requested scopes, limited to `most` (empty: unlimited); without a request, returns `most`. Throws `invalid_scope`. */
export const scopesAsked = (text: string | undefined, most: readonly string[]): string[] => {
  const names = (text ?? "").split(" ").filter((one) => one !== "");
  if (names.length === 0 && most.length === 0) throw new OAuth2Problem("invalid_scope", "Name the scopes.");
  const asked = names.length === 0 ? [...most] : names.map(known);
  const beyond = most.length === 0 ? undefined : asked.find((scope) => !allows(most, scope));
  if (beyond !== undefined) throw new OAuth2Problem("invalid_scope", `The scope ${beyond} is more than there is.`);
  return asked.includes("all") ? ["all"] : [...new Set(asked)];
};

const known = (name: string): string => {
  const scope = scopeNamed(name);
  // Without the name, because it can be any text.
  if (scope === undefined) throw new OAuth2Problem("invalid_scope", "One of the scopes is not known here.");
  return scope;
};
