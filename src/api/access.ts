// Who may do what: pure functions over the caller and the thing (facts/platform 3.8). Handlers ask here and nowhere else. Not
// visible is 404, visible but forbidden is 403.
import type { UserCaller } from "./caller.ts";

export const isOwner = (caller: UserCaller): boolean => caller.roles.includes("owner");

const hasSiteRole = (caller: UserCaller, ...roles: string[]): boolean =>
  roles.some((role) => caller.roles.includes(role));

/** True for the site owner and for whoever has one of these roles in the organization. */
export const hasOrganizationRole = (caller: UserCaller, organization: string, ...roles: string[]): boolean =>
  isOwner(caller) || (caller.organizations[organization]?.some((role) => roles.includes(role)) ?? false);

export const isMember = (caller: UserCaller, organization: string): boolean => organization in caller.organizations;

/** Members see their organizations; site-wide readers see all. */
export const maySeeOrganization = (caller: UserCaller, organization: string): boolean =>
  isMember(caller, organization) || hasSiteRole(caller, "owner", "auditor", "user-admin", "template-admin");
