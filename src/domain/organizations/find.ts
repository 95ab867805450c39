// Finds and presents the organization in a path.
import { Type as t } from "@sinclair/typebox";
import { toRfc3339 } from "#base/clock.ts";
import { AppError, notFound } from "#base/errors.ts";
import { isUuid } from "#base/ids.ts";
import type { Store } from "#db/engine/store.ts";
import {
  findDefaultOrganization,
  findOrganization,
  findOrganizationByName,
  type OrganizationRow,
} from "#db/users/organizations.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { Organization } from "#schema/users/organization.ts";
import { canSeeOrganization } from "../access.ts";

/** The path parameter of routes of one organization. */
export const organizationPath = t.Object({
  organization: t.String({ description: "The organization's ID or name, or the word `default`." }),
});

/** Returns the organization with this ID, without an access check. */
export const getOrganization = async (store: Store, id: string): Promise<OrganizationRow> => {
  const found = await store.get(findOrganization({ id }));
  if (!found) throw notFound();
  return found;
};

/** Returns the organization in a path: a UUID, a name or `default`. Rejects with 404 when it does not exist or is not visible. */
export const loadOrganization = async (store: Store, text: string, caller: UserCaller): Promise<OrganizationRow> => {
  const found = await findOrganizationNamed(store, text);
  if (!found || !canSeeOrganization(caller, found.id)) throw notFound();
  return found;
};

/** Like `loadOrganization`, for a worker, whose key belongs to one organization: rejects with 401 for another one. */
export const loadWorkersOrganization = async (
  store: Store,
  text: string,
  organizationId: string,
): Promise<OrganizationRow> => {
  const found = await findOrganizationNamed(store, text);
  if (!found) throw notFound();
  if (found.id === organizationId) return found;
  throw new AppError("unauthenticated", "The provisioner key is of another organization.");
};

const findOrganizationNamed = (store: Store, text: string): Promise<OrganizationRow | undefined> => {
  if (isUuid(text)) return store.get(findOrganization({ id: text.toLowerCase() }));
  return store.get(text === "default" ? findDefaultOrganization() : findOrganizationByName({ name: text }));
};

/** Presents an organization. */
export const presentOrganization = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  display_name: row.display_name,
  description: row.description,
  icon: row.icon,
  is_default: row.is_default,
  created_at: toRfc3339(row.created_at),
  updated_at: toRfc3339(row.updated_at),
});
