// Retention period of the audit log.
import { forbidden, invalidField } from "#base/errors.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { readAuditRetention, upsertAuditRetention } from "#db/reports/audit/settings.ts";
import { type AuditRetention, RESOURCE_TYPES } from "#schema/audit.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import { isOwner } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** Sets how long audit entries are kept. Rejects with 400 for an unknown kind, and with 403 for everyone but owners. */
export const setAuditRetention = async (
  { store, clock }: DomainContext,
  caller: UserCaller,
  after: AuditRetention,
): Promise<void> => {
  if (!isOwner(caller)) throw forbidden("Only owners can change how long entries are kept.");
  const unknown = Object.keys(after.kinds).find((kind) => !(RESOURCE_TYPES as readonly string[]).includes(kind));
  if (unknown !== undefined) throw invalidField("kinds", `"${unknown.slice(0, 64)}" is not a resource type.`);
  const before = await readAuditRetention(store);
  const entry = { now: clock.now(), action: "write", resource_type: "audit_settings", target: "retention" } as const;
  await store.commit([upsertAuditRetention(after), insertAudit({ ...entry, before, after })]);
};
