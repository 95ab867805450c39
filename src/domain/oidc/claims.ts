// Reading one claim by the name that a setting gives it: the claim of that name, or one inside of others, such as `realm_access.roles`.
import type { Claims } from "#src/authentication/oidc.ts";

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The value of a claim; undefined when none exists. Names of claims hold dots, too (`https://acme.example/groups`,
 * `resource_access.my.client.roles`), so the longest name that is there is taken at each level.
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

/** Whether the provider leaves this claim out and names another place for it, as it does when a person has too many groups. */
export const isElsewhere = ({ _claim_names: names }: Claims, path: string): boolean =>
  isMapping(names) && Object.hasOwn(names, path);
