// `slipway templates edit TEMPLATE …`: changes a template's names and settings.
import { duration, YEAR_MS } from "#base/config/kinds.ts";
import { WEEKDAYS, type Weekday } from "#base/schedule/weekdays.ts";
import { usageError } from "#base/usage-error.ts";
import type { PatchTemplate } from "#schema/templates/template.ts";
import { SHARE_LEVELS } from "#schema/workspaces/port-share.ts";
import { WAKE_LEVELS } from "#schema/workspaces/wake.ts";
import { type Arguments, readArguments } from "../../arguments.ts";
import type { RunVerb } from "../../verb.ts";
import { withServer } from "../remote.ts";
import { selectTemplate } from "./find.ts";

const TEXT_OPTIONS = {
  name: "name",
  "display-name": "display_name",
  description: "description",
  icon: "icon",
} as const;
const DURATION_OPTIONS = {
  ttl: "default_ttl_ms",
  "activity-bump": "activity_bump_ms",
  "failure-ttl": "failure_ttl_ms",
  "dormant-after": "time_til_dormant_ms",
  "delete-dormant-after": "time_til_dormant_autodelete_ms",
} as const;
const ON_OFF_OPTIONS = {
  "people-autostart": "allow_user_autostart",
  "people-autostop": "allow_user_autostop",
  "people-cancel": "allow_user_cancel_workspace_jobs",
  "only-active": "require_active_version",
  "home-backups": "home_backups",
  dotfiles: "allow_dotfiles",
} as const;
const VALUE_OPTIONS = [
  ...["people-autostart", "people-autostop", "people-cancel", "only-active", "home-backups", "dotfiles"],
  ...[
    "autostart-days",
    "autostop-days",
    "autostop-weeks",
    "port-sharing",
    "snapshots-on-stop",
    "trash-days",
    "wake-on-connect",
    "default-agent",
  ],
  ...["name", "display-name", "description", "icon", "deprecate"],
  ...["ttl", "activity-bump", "failure-ttl", "dormant-after", "delete-dormant-after"],
] as (keyof typeof TEXT_OPTIONS | keyof typeof DURATION_OPTIONS | keyof typeof ON_OFF_OPTIONS | SpecialOption)[];

type SpecialOption =
  | "deprecate"
  | "autostart-days"
  | "autostop-days"
  | "autostop-weeks"
  | "port-sharing"
  | "snapshots-on-stop"
  | "trash-days"
  | "wake-on-connect"
  | "default-agent";

export const run: RunVerb = async (input) => {
  const { words, value, has } = readArguments(input.argv, { values: VALUE_OPTIONS, switches: ["undeprecate"] });
  const changes = toChanges(value, has.undeprecate);
  const findTemplate = selectTemplate(input, words);
  return withServer("templates edit", input, value, async ({ client }) => {
    const { id, name } = await findTemplate(client);
    const template = await client.patch(`/api/v2/templates/${id}`, changes);
    input.print(has.json ? JSON.stringify(template) : `Updated template ${name}.`);
  });
};

/** Throws UsageError if there is nothing to change. */
const toChanges = (value: Arguments<(typeof VALUE_OPTIONS)[number]>["value"], undeprecate: boolean): PatchTemplate => {
  const changes: Record<string, unknown> = {};
  for (const [flag, member] of Object.entries(TEXT_OPTIONS)) {
    const text = value[flag as keyof typeof TEXT_OPTIONS];
    if (text !== undefined) changes[member] = text;
  }
  for (const [flag, member] of Object.entries(DURATION_OPTIONS)) {
    const text = value[flag as keyof typeof DURATION_OPTIONS];
    if (text !== undefined) changes[member] = text === "off" ? 0 : parseDuration(flag, text);
  }
  for (const [flag, member] of Object.entries(ON_OFF_OPTIONS)) {
    const text = value[flag as keyof typeof ON_OFF_OPTIONS];
    if (text !== undefined) changes[member] = parseSwitch(flag, text);
  }
  const [start, stop, weeks] = [value["autostart-days"], value["autostop-days"], value["autostop-weeks"]];
  if (start !== undefined) changes.autostart_requirement = { days_of_week: parseDays("--autostart-days", start) };
  if (weeks !== undefined && stop === undefined) throw usageError("--autostop-weeks", "requires --autostop-days");
  if (stop !== undefined) {
    const days_of_week = parseDays("--autostop-days", stop);
    changes.autostop_requirement = weeks === undefined ? { days_of_week } : { days_of_week, weeks: parseWeeks(weeks) };
  }
  const level = value["port-sharing"];
  if (level !== undefined) {
    if (!SHARE_LEVELS.some((one) => one === level)) {
      throw usageError("--port-sharing", `expected ${SHARE_LEVELS.join(", ")}`);
    }
    changes.max_port_share_level = level;
  }
  const snapshots = value["snapshots-on-stop"];
  if (snapshots !== undefined)
    changes.snapshots_on_stop = snapshots === "off" ? 0 : parseCount("snapshots-on-stop", snapshots);
  const wake = WAKE_LEVELS.find((one) => one === value["wake-on-connect"]);
  if (value["wake-on-connect"] !== undefined && wake === undefined) {
    throw usageError("--wake-on-connect", `expected ${WAKE_LEVELS.join(", ")}`);
  }
  if (wake !== undefined) changes.wake_on_connect = wake;
  const days = value["trash-days"];
  if (days !== undefined) changes.trash_days = days === "off" ? 0 : parseCount("trash-days", days);
  const agent = value["default-agent"];
  if (agent !== undefined) changes.default_coding_agent = agent === "none" ? "" : agent;
  if (value.deprecate !== undefined && undeprecate)
    throw usageError("--undeprecate", "cannot be combined with --deprecate");
  if (value.deprecate !== undefined) changes.deprecation_message = value.deprecate;
  if (undeprecate) changes.deprecation_message = "";
  if (Object.keys(changes).length === 0) throw usageError("templates edit", "expected at least one option to change");
  return changes;
};

const parseSwitch = (flag: string, text: string): boolean => {
  if (text !== "on" && text !== "off") throw usageError(`--${flag}`, "expected on or off");
  return text === "on";
};

/** Parses `monday,friday` or `none`. */
const parseDays = (flag: string, text: string): Weekday[] => {
  const days = text === "none" ? [] : text.split(",");
  return days.map((name) => {
    const day = WEEKDAYS.find((one) => one === name.toLowerCase());
    if (day === undefined) throw usageError(flag, "expected days such as monday,friday, or none");
    return day;
  });
};

const parseWeeks = (text: string): number => {
  if (!/^\d{1,2}$/.test(text)) throw usageError("--autostop-weeks", "expected a number of weeks");
  return Number(text);
};

const parseCount = (flag: string, text: string): number => {
  if (!/^\d{1,3}$/.test(text)) throw usageError(`--${flag}`, "expected a number, or off");
  return Number(text);
};

const parseDuration = (flag: string, text: string): number => {
  const ms = duration(0, YEAR_MS).parse(text);
  if (ms === undefined) throw usageError(`--${flag}`, "expected a duration such as 8h, or off");
  return ms;
};
