// Writes an audit entry for a rejected change on behalf of its caller (rules AU-16 to AU-19).
import { type GetOrigin, withOrigin } from "#base/origin.ts";
import type { Store } from "#db/engine/store.ts";
import { type AuditEntry, insertAudit } from "#db/reports/audit/audit.ts";

export const auditRefused = async (store: Store, origin: GetOrigin, entry: AuditEntry): Promise<void> => {
  await store.commit([withOrigin(origin, () => insertAudit(entry))]);
};
