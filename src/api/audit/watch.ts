// Streams new audit entries. Entries are written in the batches of many kinds of changes, so there is no event for them. Instead, a version
// number in memory is checked each second, and the log is read when it has changed.
import type { AuditFilter } from "#db/reports/audit/plan.ts";
import { listAudit } from "#db/reports/audit/search.ts";
import { listAuditedOrganizations } from "#domain/audit/query.ts";
import { presentEntries } from "#domain/audit/visible-entries.ts";
import type { Access } from "#domain/live-access.ts";
import type { Feed } from "../administration/feed.ts";
import type { ApiContext } from "../context.ts";
import type { UserCaller } from "../http/caller.ts";

const POLL_INTERVAL_MS = 1_000;
/** Maximum entries per check; a client that misses some reads the list. */
const MAX_ENTRIES = 100;

/** Access that lasts while the caller may still read everything in the audit log that they could read at the start. */
export const auditAccess = (
  { user_id, roles }: UserCaller,
  initialOrganizations: readonly string[] | undefined,
): Access => ({
  key: `audit ${roles.join()} ${initialOrganizations?.join() ?? ""}`,
  topic: user_id,
  lossReason: "you may no longer read this part of the audit log",
  isStillAllowed: async (caller) => {
    try {
      const current = listAuditedOrganizations(caller);
      return current === undefined || initialOrganizations?.every((id) => current.includes(id)) === true;
    } catch {
      return false;
    }
  },
});

/**
 * Sends lists of matching entries after the key `after`, oldest first, and returns a function that stops it. Without `after`, an empty list
 * is sent first: everything written from then on is sent, so a client that reads the log after it misses nothing.
 */
export const followAudit = (
  { store, clock }: ApiContext,
  {
    caller,
    filter,
    after,
  }: { readonly caller: UserCaller; readonly filter: AuditFilter; readonly after: number | undefined },
  feed: Feed,
): (() => void) => {
  let lastKey = after;
  let version: number | undefined;
  let isPolling = false;
  const loadNewest = async () =>
    (await listAudit(store, { filter, limit: lastKey === undefined ? 1 : MAX_ENTRIES })).rows;
  const poll = async (): Promise<void> => {
    if (isPolling || (lastKey !== undefined && version !== undefined && store.auditVersion === version)) return;
    isPolling = true;
    version = store.auditVersion;
    try {
      const rows = await loadNewest();
      const isFirst = lastKey === undefined;
      const newRows = lastKey === undefined ? [] : rows.filter(({ entry }) => entry.key > (lastKey ?? 0)).reverse();
      lastKey = Math.max(lastKey ?? 0, rows[0]?.entry.key ?? 0);
      if (isFirst || newRows.length > 0) feed.send(JSON.stringify(await presentEntries({ store }, caller, newRows)));
    } finally {
      isPolling = false;
    }
  };
  void poll().catch(feed.fail);
  const timer = clock.every(POLL_INTERVAL_MS, () => void poll().catch(feed.fail));
  return () => timer.cancel();
};
