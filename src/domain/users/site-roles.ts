// Names of roles, checked, and how lists of roles to give look.
import { type Static, Type as t } from "@sinclair/typebox";
import { invalidField } from "#base/errors.ts";
import { named } from "#schema/named.ts";
import { SITE_ROLES } from "#schema/users/user.ts";
import { presentRole } from "./present.ts";

export const AssignableRole = named(
  "AssignableRole",
  t.Object({
    name: t.String(),
    display_name: t.String(),
    organization_id: t.Optional(t.String({ format: "uuid", description: "Absent for roles of the whole site." })),
    assignable: t.Boolean({ description: "Whether the caller may give it." }),
    built_in: t.Boolean(),
  }),
);
export type AssignableRole = Static<typeof AssignableRole>;

/** The roles without duplicates and without the implied one; 400 for a name that is none. */
const checked = (roles: readonly string[], known: readonly string[], implied: string): string[] => {
  const wanted = [...new Set(roles)].filter((role) => role !== implied);
  const unknown = wanted.find((role) => !known.includes(role));
  if (unknown !== undefined) throw invalidField("roles", `"${unknown}" is not one of ${known.join(", ")}.`);
  return wanted;
};

export const siteRoles = (roles: readonly string[]): string[] => checked(roles, SITE_ROLES, "member");

export const ORGANIZATION_ROLES = [
  "organization-admin",
  "organization-auditor",
  "organization-user-admin",
  "organization-template-admin",
  "organization-workspace-creation-ban",
] as const;

export const organizationRoles = (roles: readonly string[]): string[] =>
  checked(roles, ORGANIZATION_ROLES, "organization-member");

/** Roles in the order they are offered, each with whether this caller may give it. */
export const assignable = (names: readonly string[], isAllowed: boolean, organization?: string): AssignableRole[] =>
  names.map((name) => ({ ...presentRole(name, organization), assignable: isAllowed, built_in: true }));
