// Retention of the audit log: one value of the table `settings`. Unlimited by default.
import type { AuditAction, AuditRetention, ResourceType } from "#schema/audit.ts";
import type { Statement } from "../../engine/sql.ts";
import type { Store } from "../../engine/store.ts";
import { findSetting, upsertSetting } from "../../settings.ts";

const KEY = "audit.retention";
const UNLIMITED: AuditRetention = { days: 0, sign_in_days: null, kinds: {} };

export const readAuditRetention = async (store: Pick<Store, "get">): Promise<AuditRetention> => {
  const row = await store.get(findSetting({ key: KEY }));
  return row ? { ...UNLIMITED, ...(JSON.parse(row.value) as AuditRetention) } : UNLIMITED;
};

export const upsertAuditRetention = (retention: AuditRetention): Statement =>
  upsertSetting({ key: KEY, value: JSON.stringify(retention) });

const SIGN_INS: readonly AuditAction[] = ["login", "logout"];

/** Returns the days that an entry of this kind is kept; 0 means forever. `sign_in_days` takes precedence over `kinds`. */
export const toRetentionDays = (retention: AuditRetention, type: ResourceType, action: AuditAction): number => {
  const { days, sign_in_days, kinds } = retention;
  if (SIGN_INS.includes(action) && sign_in_days !== null) return sign_in_days;
  return kinds[type] ?? days;
};
