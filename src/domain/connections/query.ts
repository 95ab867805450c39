// Parses the connection log's search `q` and limits it to what the caller may see, like the audit log's.
import { SearchQuery } from "#base/query.ts";
import type { ConnectionFilter } from "#db/connections/search.ts";
import type { Store } from "#db/engine/store.ts";
import { CONNECTION_STATUSES, CONNECTION_TYPES } from "#schema/connections.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { listAuditedOrganizations } from "../audit/query.ts";
import { findFilterOrganization, findFilterUsers } from "../audit/resolve-names.ts";

/**
 * Returns the organizations whose entries the caller may see; undefined means all entries. Rejects with 403 for callers who may see
 * nothing.
 */
export const listLoggedOrganizations = (caller: UserCaller): readonly string[] | undefined =>
  listAuditedOrganizations(caller, "connection log");

/** Returns the filter for `q`, limited to what the caller may see. Throws 400 with one validation per mistake. */
export const parseConnectionFilter = async (store: Store, q: string, caller: UserCaller): Promise<ConnectionFilter> => {
  const within = listLoggedOrganizations(caller);
  const search = new SearchQuery(q);
  if (search.free !== "" && search.has("type")) search.addProblem("type", "is given as free text, too.");
  const status = search.choice("status", CONNECTION_STATUSES);
  const filter: ConnectionFilter = {
    type: search.free === "" ? search.choice("type", CONNECTION_TYPES) : parseType(search),
    organization_id: await findFilterOrganization(store, search),
    workspace_id: search.uuid("workspace_id"),
    connection_id: search.uuid("connection_id"),
    owner_ids: await findFilterUsers(store, search, caller, {
      name: "workspace_owner",
      email: "workspace_owner_email",
    }),
    user_ids: await findFilterUsers(store, search, caller, { name: "username", email: "user_email" }),
    is_open: status && status === "ongoing",
    from: search.time("connected_after"),
    to: search.time("connected_before"),
    within,
  };
  search.requireValid("Invalid connection search query.");
  return filter;
};

/** Free text is the name of a type. */
const parseType = (search: SearchQuery) => {
  const word = search.free.replaceAll(" ", "_");
  const found = CONNECTION_TYPES.find((type) => type === word);
  if (!found) search.addProblem("type", `"${search.free}" is not one of ${CONNECTION_TYPES.join(", ")}.`);
  return found;
};
