// Retention of the connection log: one value of the table `settings`.
import type { ConnectionRetention } from "#schema/connections.ts";
import type { Statement } from "../engine/sql.ts";
import type { Store } from "../engine/store.ts";
import { findSetting, upsertSetting } from "../settings.ts";

const KEY = "connections.retention";
/** A default, unlike in the audit log: connections are more frequent than changes, and become irrelevant sooner. */
const DEFAULT_RETENTION: ConnectionRetention = { days: 90 };

export const readConnectionRetention = async (store: Pick<Store, "get">): Promise<ConnectionRetention> => {
  const row = await store.get(findSetting({ key: KEY }));
  return row ? (JSON.parse(row.value) as ConnectionRetention) : DEFAULT_RETENTION;
};

export const upsertConnectionRetention = (retention: ConnectionRetention): Statement =>
  upsertSetting({ key: KEY, value: JSON.stringify(retention) });
