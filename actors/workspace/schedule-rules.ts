// Loads the rules of a workspace's template and owner for its times. The pure functions in this folder use them.

import type { Store } from "#db/engine/store.ts";
import type { ScheduleRules } from "#db/workspaces/schedule-rules.ts";
import { findScheduleRules } from "#db/workspaces/schedule-rules.ts";
import type { WorkspaceRow } from "#db/workspaces/workspaces.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";

export type { ScheduleRules };

/** A template without limits or automation. */
export const DEFAULT_RULES: ScheduleRules = {
  active_version_id: "",
  default_ttl_ms: 0,
  activity_bump_ms: 3_600_000,
  autostop_requirement_days: [],
  autostop_requirement_weeks: 1,
  autostart_requirement_days: ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
  allow_user_autostart: true,
  allow_user_autostop: true,
  failure_ttl_ms: 0,
  time_til_dormant_ms: 0,
  time_til_dormant_autodelete_ms: 0,
  require_active_version: false,
  owner_status: "active",
  quiet_hours_schedule: "",
};

export const loadRules = async (
  store: Pick<Store, "get">,
  { template_id, owner_id }: Pick<WorkspaceRow, "template_id" | "owner_id">,
): Promise<ScheduleRules> => {
  const rules = await store.get(findScheduleRules({ template_id, owner_id }));
  if (!rules) throw new Error(`template ${template_id} or owner ${owner_id} of a workspace does not exist`);
  return rules;
};

/** Returns true for an unclaimed prebuild, which has no schedule (facts/platform 2.7). */
export const isUnclaimed = ({ owner_id }: Pick<WorkspaceRow, "owner_id">): boolean => owner_id === PREBUILDS_USER_ID;
