// Parses the audit log's search `q` (facts/platform 7) and limits it to what the caller may see (3.8). Rejects with 403 for callers who may
// see nothing.
import { forbidden } from "#base/errors.ts";
import { SearchQuery } from "#base/query.ts";
import type { Store } from "#db/engine/store.ts";
import type { AuditFilter } from "#db/reports/audit/plan.ts";
import { AUDIT_ACTIONS, RESOURCE_TYPES } from "#schema/audit.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { BUILD_REASONS } from "#schema/workspaces/build.ts";
import { canReadAudit } from "../access.ts";
import { findFilterOrganization, findFilterUsers } from "./resolve-names.ts";

/** Returns the organizations whose entries the caller may see; undefined means all entries. */
export const listAuditedOrganizations = (caller: UserCaller, log = "audit log"): readonly string[] | undefined => {
  if (canReadAudit(caller)) return undefined;
  const organizations = Object.keys(caller.organizations).filter((id) => canReadAudit(caller, id));
  if (organizations.length === 0)
    throw forbidden(`Only owners and auditors, of the site or an organization, see the ${log}.`);
  return organizations;
};

/** Returns the filter for `q`, limited to what the caller may see. Throws 400 with one validation per mistake. */
export const parseAuditFilter = async (store: Store, q: string, caller: UserCaller): Promise<AuditFilter> => {
  const within = listAuditedOrganizations(caller);
  const search = new SearchQuery(q);
  const kind = search.free === "" ? search.choice("resource_type", RESOURCE_TYPES) : findKind(search);
  const filter: AuditFilter = {
    resource_type: kind,
    action: search.choice("action", AUDIT_ACTIONS),
    build_reason: search.choice("build_reason", BUILD_REASONS),
    resource_id: search.uuid("resource_id"),
    request_id: search.uuid("request_id"),
    resource_target: search.text("resource_target"),
    user_ids: await findFilterUsers(store, search, caller, { name: "username", email: "email" }),
    organization_id: await findFilterOrganization(store, search),
    from: findDay(search, "date_from"),
    to: toDayEnd(findDay(search, "date_to")),
    within,
  };
  search.requireValid("Invalid audit search query.");
  return filter;
};

/** Words without a key name a kind of resource. */
const findKind = (search: SearchQuery) => {
  if (search.has("resource_type")) search.addProblem("resource_type", "is given as free text, too.");
  const word = search.free.replaceAll(" ", "_");
  const found = RESOURCE_TYPES.find((type) => type === word);
  if (!found) search.addProblem("resource_type", `"${search.free}" is not one of ${RESOURCE_TYPES.join(", ")}.`);
  return found;
};

const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;

/** Returns the first moment of a day, UTC. */
const findDay = (search: SearchQuery, key: string): number | undefined => {
  const text = search.text(key);
  if (text === undefined) return undefined;
  const time = DAY_PATTERN.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // Otherwise, February 30 would be parsed as a day in March.
  if (!Number.isNaN(time) && new Date(time).toISOString().startsWith(text)) return time;
  search.addProblem(key, `"${text}" is not a date such as 2026-01-31.`);
  return undefined;
};

const toDayEnd = (day: number | undefined): number | undefined => (day === undefined ? undefined : day + DAY_MS - 1);
