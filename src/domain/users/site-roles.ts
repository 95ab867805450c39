// Validates role names, and lists the roles that can be assigned.
import { type Static, Type as t } from "@sinclair/typebox";
import { invalidField } from "#base/errors.ts";
import { named } from "#schema/shape-names.ts";
import { SITE_ROLES } from "#schema/users/user.ts";
import { presentRole } from "./present.ts";

export const AssignableRole = named(
  "AssignableRole",
  t.Object({
    name: t.String(),
    display_name: t.String(),
    organization_id: t.Optional(
      t.String({ format: "uuid", description: "The ID of the organization; absent for site roles." }),
    ),
    assignable: t.Boolean({ description: "Whether the caller can assign the role." }),
    built_in: t.Boolean(),
  }),
);
export type AssignableRole = Static<typeof AssignableRole>;

/** Returns the roles without duplicates and the implied one. Rejects with 400 for an unknown name. */
const checkRoles = (roles: readonly string[], known: readonly string[], implied: string): string[] => {
  const requested = [...new Set(roles)].filter((role) => role !== implied);
  const unknown = requested.find((role) => !known.includes(role));
  if (unknown !== undefined) throw invalidField("roles", `"${unknown}" is not one of ${known.join(", ")}.`);
  return requested;
};

export const checkSiteRoles = (roles: readonly string[]): string[] => checkRoles(roles, SITE_ROLES, "member");

export const ORGANIZATION_ROLES = [
  "organization-admin",
  "organization-auditor",
  "organization-user-admin",
  "organization-template-admin",
  "organization-workspace-creation-ban",
] as const;

export const checkOrganizationRoles = (roles: readonly string[]): string[] =>
  checkRoles(roles, ORGANIZATION_ROLES, "organization-member");

/** Returns the roles in display order, each with whether this caller can assign it. */
export const listAssignable = (names: readonly string[], isAllowed: boolean, organization?: string): AssignableRole[] =>
  names.map((name) => ({ ...presentRole(name, organization), assignable: isAllowed, built_in: true }));
