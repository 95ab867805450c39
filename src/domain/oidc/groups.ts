// The groups that a provider puts a person into, and what the mapping of its setting makes of them; pure.
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import type { Claims } from "#src/authentication/oidc.ts";

/** The groups in a claim: a list of texts, or one text. */
export const groupsIn = (claims: Claims, { groups_claim = "groups" }: OidcSetting): string[] => {
  const claim = claims[groups_claim];
  const groups = Array.isArray(claim) ? claim : [claim];
  return groups.filter((group): group is string => typeof group === "string").slice(0, 1000);
};

const unionOf = (lists: readonly (readonly string[] | undefined)[]): string[] => [
  ...new Set(lists.flatMap((list) => list ?? [])),
];

/** The roles of the site that these groups give; undefined: the provider does not decide about them. */
export const rolesOf = ({ roles }: OidcSetting, groups: readonly string[]): string[] | undefined =>
  roles && unionOf(groups.map((group) => (Object.hasOwn(roles, group) ? roles[group] : undefined))).sort();

/** By organization: the roles there, or null for no member. Organizations that the mapping does not name are left alone. */
export const membershipsOf = (
  { organizations = {} }: OidcSetting,
  groups: readonly string[],
): Record<string, string[] | null> => {
  const named = new Set(Object.values(organizations).flatMap((by) => Object.keys(by)));
  const mine = groups.flatMap((group) => (Object.hasOwn(organizations, group) ? [organizations[group] ?? {}] : []));
  return Object.fromEntries(
    [...named].map((name) => {
      const lists = mine.flatMap((by) => (Object.hasOwn(by, name) ? [by[name]] : []));
      return [name, lists.length === 0 ? null : unionOf(lists).sort()];
    }),
  );
};
