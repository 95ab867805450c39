// Retention period of the connection log.
import { forbidden } from "#base/errors.ts";
import { readConnectionRetention, upsertConnectionRetention } from "#db/connections/settings.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { ConnectionRetention } from "#schema/connections.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** Sets how long entries of the connection log are kept. Rejects with 403 for everyone but owners. */
export const setConnectionRetention = async (
  { store, clock }: DomainContext,
  caller: UserCaller,
  after: ConnectionRetention,
): Promise<void> => {
  if (!isOwner(caller)) throw forbidden("Only owners can change how long entries are kept.");
  const before = await readConnectionRetention(store);
  const entry = {
    now: clock.now(),
    action: "write",
    resource_type: "audit_settings",
    target: "connection retention",
  } as const;
  await store.commit([upsertConnectionRetention(after), insertAudit({ ...entry, before, after })]);
};
