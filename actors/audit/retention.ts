// Deletes audit log entries after their retention period, by kind and in slices small enough not to delay other writes (rule AU-14).
// Nothing else deletes entries.
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { Store } from "#db/engine/store.ts";
import { deleteOldAudit, findOldAudit } from "#db/reports/audit/search.ts";
import { readAuditRetention, toRetentionDays } from "#db/reports/audit/settings.ts";
import { AUDIT_ACTIONS, RESOURCE_TYPES } from "#schema/audit.ts";
import { type Chore, PeriodicChore } from "../runtime/chore.ts";

const RUN_INTERVAL_MS = 3_600_000;
const DAY_MS = 86_400_000;

type Deps = { readonly store: Store; readonly clock: Pick<Clock, "now"> };

export const auditRetention = ({ store, clock }: Deps): Chore =>
  new PeriodicChore({
    clock,
    every_ms: RUN_INTERVAL_MS,
    work: (now, isStopped) => deleteOld(store, now, isStopped),
    failed: (error) => log("audit").warn("could not delete old audit log entries: {error}", { error }),
  });

const deleteOld = async (store: Store, now: number, isStopped: () => boolean): Promise<void> => {
  const retention = await readAuditRetention(store);
  for (const resource_type of RESOURCE_TYPES) {
    for (const action of AUDIT_ACTIONS) {
      const days = toRetentionDays(retention, resource_type, action);
      if (days === 0) continue;
      const old = { resource_type, action, before: now - days * DAY_MS };
      while (!isStopped() && (await store.get(findOldAudit(old))))
        await store.commit([deleteOldAudit(old)], { of: "deployment" });
    }
  }
};
