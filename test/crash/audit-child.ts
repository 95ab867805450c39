// A process that makes changes forever, each with its audit log entry, and prints which were acknowledged. audit.test.ts kills it.

import { openLocalStore } from "#db/engine/local.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { upsertSetting } from "#db/settings.ts";

const store = openLocalStore({ directory: process.argv[2] ?? "", cacheMb: 4, now: 0, fatal: () => {} });
const round = Number(process.argv[3]);

/** Makes changes one after the other. Several run in parallel, so that one flush contains many of them. */
const change = async (lane: number): Promise<void> => {
  for (let n = 0; ; n++) {
    const key = `probe/${round}/${lane}/${n}`;
    const entry = { now: n, action: "write", resource_type: "audit_settings", target: key } as const;
    await store.commit([upsertSetting({ key, value: "1" }), insertAudit(entry)]);
    process.stdout.write(`${key}\n`);
  }
};
await Promise.all(Array.from({ length: 8 }, (_, lane) => change(lane)));
