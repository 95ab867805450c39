// Finding the organization a path names, and showing it.
import { Type as t } from "@sinclair/typebox";
import { rfc3339 } from "#base/clock.ts";
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
import { maySeeOrganization } from "../access.ts";

/** The path parameter of every route of one organization. */
export const organizationPath = t.Object({
  organization: t.String({ description: "Organization id, name, or the word `default`." }),
});

/** The organization with this id, whoever asks. */
export const getOrganization = async (store: Store, id: string): Promise<OrganizationRow> => {
  const found = await store.get(findOrganization({ id }));
  if (!found) throw notFound();
  return found;
};

/** The organization named by a path: a UUID, a name or the word `default`. 404 when it is not there or not visible. */
export const organizationAt = async (store: Store, text: string, caller: UserCaller): Promise<OrganizationRow> => {
  const found = await organizationNamed(store, text);
  if (!found || !maySeeOrganization(caller, found.id)) throw notFound();
  return found;
};

/** The same for a worker, whose key is of one organization: 401 for another's. */
export const workersOrganizationAt = async (store: Store, text: string, own: string): Promise<OrganizationRow> => {
  const found = await organizationNamed(store, text);
  if (!found) throw notFound();
  if (found.id === own) return found;
  throw new AppError("unauthenticated", "The provisioner key is of another organization.");
};

const organizationNamed = (store: Store, text: string): Promise<OrganizationRow | undefined> => {
  if (isUuid(text)) return store.get(findOrganization({ id: text.toLowerCase() }));
  return store.get(text === "default" ? findDefaultOrganization() : findOrganizationByName({ name: text }));
};

/** The row as callers see it. */
export const presentOrganization = (row: OrganizationRow): Organization => ({
  id: row.id,
  name: row.name,
  display_name: row.display_name,
  description: row.description,
  icon: row.icon,
  is_default: row.is_default,
  created_at: rfc3339(row.created_at),
  updated_at: rfc3339(row.updated_at),
});
