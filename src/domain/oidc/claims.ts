// Reads a claim by the name in a setting: a top-level claim, or a nested one such as `realm_access.roles`.
import type { Claims } from "#src/authentication/oidc.ts";

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns the value of a claim; undefined if it is missing. Claim names can contain dots (`https://acme.example/groups`,
 * `resource_access.my.client.roles`), so the longest existing name is used at each level.
 */
export const claimAt = (claims: Readonly<Record<string, unknown>>, path: string): unknown => {
  if (Object.hasOwn(claims, path)) return claims[path];
  for (let dot = path.lastIndexOf("."); dot > 0; dot = path.lastIndexOf(".", dot - 1)) {
    const name = path.slice(0, dot);
    const inner = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (!isMapping(inner)) continue;
    const found = claimAt(inner, path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Returns whether the provider omits this claim and refers to another source, as it does for a person in too many groups. */
export const isElsewhere = ({ _claim_names: names }: Claims, path: string): boolean =>
  isMapping(names) && Object.hasOwn(names, path);
