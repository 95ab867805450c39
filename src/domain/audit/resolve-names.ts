// Resolves the users and organization named in a search of the audit log or connection log, including deleted ones.
import { isUuid } from "#base/ids.ts";
import type { SearchQuery } from "#base/query.ts";
import type { Store } from "#db/engine/store.ts";
import { listUsersAt, listUsersCalled } from "#db/reports/audit/search.ts";
import { findOrganizationByName } from "#db/users/organizations.ts";
import type { UserCaller } from "#schema/users/caller.ts";

/**
 * Returns the IDs of users matching a username (or `me`) and an email address; undefined if neither is given, and an empty list if no one
 * matches.
 */
export const findFilterUsers = async (
  store: Store,
  search: SearchQuery,
  caller: UserCaller,
  keys: { readonly name: string; readonly email: string },
): Promise<string[] | undefined> => {
  const name = search.text(keys.name);
  const email = search.text(keys.email);
  const byName = name && (name === "me" ? [caller.user_id] : toIds(await store.scan(listUsersCalled({ name }))));
  const byEmail = email && toIds(await store.scan(listUsersAt({ email })));
  if (byName && byEmail) return byName.filter((id) => byEmail.includes(id));
  return byName || byEmail || undefined;
};

const toIds = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/** Resolves the key `organization`, an ID or a name; rejects an unknown name. */
export const findFilterOrganization = async (store: Store, search: SearchQuery): Promise<string | undefined> => {
  const text = search.text("organization");
  if (text === undefined || isUuid(text)) return text;
  const found = await store.get(findOrganizationByName({ name: text }));
  if (!found) search.addProblem("organization", `There is no organization "${text}".`);
  return found?.id;
};
