// Reads a person's groups from the provider, applies the configured mapping, and reports what looks like a configuration mistake. Pure.
import type { OidcSetting } from "#base/config/oidc-settings.ts";
import type { Claims } from "#src/authentication/oidc.ts";
import { claimAt, isElsewhere } from "./claims.ts";

/** More than any provider sends; further groups are reported. */
const MAX_GROUPS = 20_000;
/** Maximum values named in one remark. */
const MAX_NAMED = 5;

export type Groups = {
  readonly groups: readonly string[];
  /** The provider left the groups out: because the person has too many (`too-many`), or for an unknown reason. */
  readonly missing?: "too-many" | "unknown";
  /** Remarks for administrators, one sentence each. */
  readonly remarks: readonly string[];
};

const quoteList = (values: readonly string[]): string => {
  const shown = values.slice(0, MAX_NAMED).map((one) => JSON.stringify(one.slice(0, 100)));
  return shown.join(", ") + (values.length > MAX_NAMED ? ` and ${values.length - MAX_NAMED} more` : "");
};

const listMappedNames = ({ roles = {}, organizations = {} }: OidcSetting): string[] => [
  ...new Set([...Object.keys(roles), ...Object.keys(organizations)]),
];

/** Reads the groups claim: a list of strings, or one string. */
export const readGroups = (claims: Claims, setting: OidcSetting): Groups => {
  const { groups_claim = "groups" } = setting;
  const mapping = listMappedNames(setting);
  const claim = claimAt(claims, groups_claim);
  if (claim === undefined) {
    const missing = isElsewhere(claims, groups_claim) ? "too-many" : "unknown";
    if (mapping.length === 0) return { groups: [], missing, remarks: [] };
    const remark =
      missing === "too-many"
        ? `The provider left the claim ${groups_claim} out because this person has too many groups. Let it send only the groups that are assigned to this application, or map roles of the application instead.`
        : `The claim ${groups_claim} is missing. Check groups_claim, the scopes, and what the provider sends to this client.`;
    return { groups: [], missing, remarks: [remark] };
  }
  const values = Array.isArray(claim) ? claim : [claim];
  const texts = values.filter((value): value is string => typeof value === "string" && value !== "");
  const groups = texts.slice(0, MAX_GROUPS);
  return {
    groups,
    remarks: [
      ...(texts.length < values.length
        ? [
            `The claim ${groups_claim} holds values that are not texts (${values.length - texts.length}). They are ignored.`,
          ]
        : []),
      ...(texts.length > MAX_GROUPS
        ? [`The claim ${groups_claim} has ${texts.length} groups. Only the first ${MAX_GROUPS} are used.`]
        : []),
      ...findUnmatchedRemarks(groups, mapping),
    ],
  };
};

/** Normalizes common spelling differences of a group: letter case, a path, whitespace. */
const normalizeGroup = (group: string): string => group.trim().replace(/^\/+/, "").toLowerCase();

/** Reports groups that nearly match the mapping, and a person without any matching group. */
const findUnmatchedRemarks = (groups: readonly string[], mapping: readonly string[]): string[] => {
  if (mapping.length === 0 || groups.length === 0) return [];
  const mapped = new Set(mapping);
  const unmatched = groups.filter((group) => !mapped.has(group));
  const byNormalizedName = new Map(mapping.map((name) => [normalizeGroup(name), name]));
  const nearMatches = unmatched.flatMap((group) => {
    const [match] = group.includes(",")
      ? group.split(",").flatMap((part) => byNormalizedName.get(normalizeGroup(part)) ?? [])
      : [byNormalizedName.get(normalizeGroup(group))];
    return match === undefined
      ? []
      : [`${JSON.stringify(group.slice(0, 100))} does not match ${JSON.stringify(match)}`];
  });
  if (nearMatches.length > 0) {
    return [`Group names must match the mapping exactly: ${nearMatches.slice(0, MAX_NAMED).join("; ")}.`];
  }
  if (unmatched.length < groups.length) return [];
  return [`None of the groups matches the mapping: ${quoteList(unmatched)}. The mapping names ${quoteList(mapping)}.`];
};

const mergeLists = (lists: readonly (readonly string[] | undefined)[]): string[] => [
  ...new Set(lists.flatMap((list) => list ?? [])),
];

/** Returns the site roles from these groups; undefined if the provider does not manage roles. */
export const findRoles = ({ roles }: OidcSetting, groups: readonly string[]): string[] | undefined =>
  roles && mergeLists(groups.map((group) => (Object.hasOwn(roles, group) ? roles[group] : undefined))).sort();

/** Returns the roles by organization, or null for no membership. Organizations missing from the mapping are left unchanged. */
export const findMemberships = (
  { organizations = {} }: OidcSetting,
  groups: readonly string[],
): Record<string, string[] | null> => {
  const organizationNames = new Set(Object.values(organizations).flatMap((by) => Object.keys(by)));
  const matching = groups.flatMap((group) => (Object.hasOwn(organizations, group) ? [organizations[group] ?? {}] : []));
  return Object.fromEntries(
    [...organizationNames].map((name) => {
      const lists = matching.flatMap((by) => (Object.hasOwn(by, name) ? [by[name]] : []));
      return [name, lists.length === 0 ? null : mergeLists(lists).sort()];
    }),
  );
};
