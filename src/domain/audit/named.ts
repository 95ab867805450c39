// Whom and which organization a search of the audit log or of the connection log names: those that no longer exist, too.
import { isUuid } from "#base/ids.ts";
import type { SearchQuery } from "#base/query.ts";
import type { Store } from "#db/engine/store.ts";
import { listUsersAt, listUsersCalled } from "#db/reports/audit/search.ts";
import { findOrganizationByName } from "#db/users/organizations.ts";
import type { UserCaller } from "#schema/users/caller.ts";

/** Ids of those whom the keys of a name (or `me`) and of an email address mean; undefined where neither is given. Nobody is an empty list. */
export const usersIn = async (
  store: Store,
  search: SearchQuery,
  caller: UserCaller,
  keys: { readonly name: string; readonly email: string },
): Promise<string[] | undefined> => {
  const name = search.text(keys.name);
  const email = search.text(keys.email);
  const called = name && (name === "me" ? [caller.user_id] : idsIn(await store.scan(listUsersCalled({ name }))));
  const at = email && idsIn(await store.scan(listUsersAt({ email })));
  if (called && at) return called.filter((id) => at.includes(id));
  return called || at || undefined;
};

const idsIn = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/** What the key `organization` means, an id or a name; a name that nobody has is refused. */
export const organizationIn = async (store: Store, search: SearchQuery): Promise<string | undefined> => {
  const text = search.text("organization");
  if (text === undefined || isUuid(text)) return text;
  const found = await store.get(findOrganizationByName({ name: text }));
  if (!found) search.refuse("organization", `There is no organization "${text}".`);
  return found?.id;
};
