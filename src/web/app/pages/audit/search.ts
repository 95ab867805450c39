// The search keys of the audit log and their values.
import { AUDIT_ACTIONS, RESOURCE_TYPES } from "./words.ts";

const DAY_COUNT = 7;
const formatDay = (daysAgo: number): string =>
  new Date(Date.now() - daysAgo * 24 * 3_600_000).toISOString().slice(0, 10);

/** The last DAYS days, newest first. */
const listDays = (): string[] => Array.from({ length: DAY_COUNT }, (_, daysAgo) => formatDay(daysAgo));

const VALUES: Readonly<Record<string, () => readonly string[]>> = {
  action: () => AUDIT_ACTIONS,
  resource_type: () => RESOURCE_TYPES,
  username: () => ["me"],
  email: () => [],
  organization: () => [],
  resource_target: () => [],
  resource_id: () => [],
  request_id: () => [],
  build_reason: () => ["initiator", "autostart", "autostop", "dormancy", "autodelete", "dashboard", "cli"],
  date_from: listDays,
  date_to: listDays,
};

export const KEYS = Object.keys(VALUES);

export const listValues = (key: string): readonly string[] => VALUES[key]?.() ?? [];
