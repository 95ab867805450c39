// Pauses and resumes prebuilt workspaces, for example while an engine is repaired; for owners (rule PB-18).
import { forbidden } from "#base/errors.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import { readPrebuildsPaused, scheduleAllPrebuildChecks, upsertPrebuildsPaused } from "#db/workspaces/prebuilds.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { PrebuildSettings } from "#schema/workspaces/prebuild-settings.ts";
import { canChangeDeployment, canReadDeployment } from "../access.ts";
import type { DomainContext } from "../context.ts";

/** Returns whether prebuilt workspaces are paused. Rejects with 403. */
export const prebuildSettings = async (
  { store }: Pick<DomainContext, "store">,
  caller: UserCaller,
): Promise<PrebuildSettings> => {
  if (!canReadDeployment(caller))
    throw forbidden("Only owners and auditors can see whether prebuilt workspaces are paused.");
  return { reconciliation_paused: await readPrebuildsPaused(store) };
};

/** Pauses or resumes prebuilt workspaces. Rejects with 403. */
export const setPrebuildSettings = async (
  { store, clock }: Pick<DomainContext, "store" | "clock">,
  caller: UserCaller,
  after: PrebuildSettings,
): Promise<void> => {
  if (!canChangeDeployment(caller)) throw forbidden("Only owners can pause prebuilt workspaces.");
  const before = { reconciliation_paused: await readPrebuildsPaused(store) };
  if (Bun.deepEquals(before, after)) return;
  const now = clock.now();
  const base = { now, action: "write", resource_type: "prebuilds_settings", target: "reconciliation" } as const;
  await store.commit([
    upsertPrebuildsPaused(after.reconciliation_paused),
    scheduleAllPrebuildChecks(now),
    insertAudit({ ...base, before, after }),
  ]);
};
