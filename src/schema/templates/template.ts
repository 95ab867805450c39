// Wire shapes of templates (facts/platform 9.3).

import { type Static, Type as t } from "@sinclair/typebox";
import { WEEKDAYS } from "#base/schedule/weekdays.ts";
import { CODING_AGENT_NAME } from "../ai/coding-agents.ts";
import { time, uuid } from "../fields.ts";
import { named, namedObject } from "../shape-names.ts";
import { iconText, linesText, trimmedText } from "../text.ts";
import { PortShareLevel } from "../workspaces/port-share.ts";
import { wakeLevel } from "../workspaces/wake.ts";

const ms = (description: string) => t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

const Days = t.Array(named("Weekday", t.Union(WEEKDAYS.map((day) => t.Literal(day)))), {
  maxItems: 7,
  uniqueItems: true,
});

const Autostop = namedObject("TemplateAutostop", {
  days_of_week: Days,
  weeks: t.Optional(t.Integer({ minimum: 0, maximum: 16, description: "Every so many weeks." })),
});
const Autostart = namedObject("TemplateAutostart", { days_of_week: Days });

const Percentiles = namedObject("BuildTimePercentiles", {
  P50: t.Union([t.Integer(), t.Null()], { description: "Milliseconds; null without builds." }),
  P95: t.Union([t.Integer(), t.Null()], { description: "Milliseconds; null without builds." }),
});
export const BuildTimeStats = namedObject("BuildTimeStats", {
  start: Percentiles,
  stop: Percentiles,
  delete: Percentiles,
});
export type BuildTimeStats = Static<typeof BuildTimeStats>;

export const Template = namedObject("Template", {
  id: uuid(),
  created_at: time(),
  updated_at: time(),
  organization_id: uuid(),
  organization_name: t.String(),
  organization_display_name: t.String(),
  organization_icon: t.String(),
  name: t.String({ description: "Used in paths; unique within the organization." }),
  display_name: t.String(),
  description: t.String(),
  icon: t.String(),
  provisioner: t.String({ description: "The provisioner of its workspaces: local, docker, external or echo." }),
  active_version_id: uuid("The version that new workspaces use."),
  active_user_count: t.Integer({ description: "Users who have a workspace with this template." }),
  build_time_stats: BuildTimeStats,
  created_by_id: uuid(),
  created_by_name: t.String(),
  deleted: t.Boolean(),
  deprecated: t.Boolean({ description: "No new workspaces can be created from it." }),
  deprecation_message: t.String(),
  default_ttl_ms: t.Integer({ description: "How long a started workspace runs; 0: without limit." }),
  activity_bump_ms: t.Integer({ description: "How much activity extends the deadline." }),
  autostop_requirement: t.Object({ days_of_week: t.Array(t.String()), weeks: t.Integer() }),
  autostart_requirement: t.Object({ days_of_week: t.Array(t.String()) }),
  allow_user_cancel_workspace_jobs: t.Boolean(),
  allow_user_autostart: t.Boolean(),
  allow_user_autostop: t.Boolean(),
  failure_ttl_ms: t.Integer(),
  time_til_dormant_ms: t.Integer({ description: "Inactivity after which a workspace becomes dormant; 0: never." }),
  time_til_dormant_autodelete_ms: t.Integer({ description: "Dormancy after which it is deleted; 0: never." }),
  require_active_version: t.Boolean({ description: "Workspaces are always built from the active version." }),
  snapshots_on_stop: t.Integer({
    description: "How many snapshots created on stop each workspace keeps; 0: none are created.",
  }),
  home_backups: t.Boolean({
    description: "Whether workspace files are backed up on the server's schedule.",
  }),
  trash_days: t.Integer({
    description: "How many days deleted workspaces can be restored; 0: not at all.",
  }),
  wake_on_connect: wakeLevel("Who starts a stopped workspace by connecting to it."),
  default_coding_agent: t.String({
    description: "The default coding agent of chats and tasks in its workspaces; empty: none.",
  }),
  allow_dotfiles: t.Boolean({ description: "Whether its workspaces install their owner's dotfiles." }),
  snapshots_unsupported: t.String({ description: "Why its workspaces can't have snapshots; empty if they can." }),
  has_trash: t.Boolean({ description: "Whether its deleted workspaces can stay in the trash, with their files." }),
  max_port_share_level: t.String({ description: "owner, authenticated, organization or public." }),
  use_classic_parameter_flow: t.Boolean(),
  cors_behavior: t.String(),
});
export type Template = Static<typeof Template>;

const name = t.String({
  pattern: "^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$",
  minLength: 1,
  maxLength: 32,
  description: "1 to 32 letters and digits, in groups joined by single hyphens.",
});

const settings = {
  display_name: t.Optional(trimmedText({ maxLength: 64, description: "For display." })),
  description: t.Optional(linesText({ maxLength: 4096 })),
  icon: t.Optional(iconText({ maxLength: 4096 })),
  default_ttl_ms: t.Optional(ms("How long a started workspace runs; 0: without limit.")),
  activity_bump_ms: t.Optional(ms("How much activity extends the deadline; default one hour.")),
  autostop_requirement: t.Optional(Autostop),
  autostart_requirement: t.Optional(Autostart),
  allow_user_cancel_workspace_jobs: t.Optional(t.Boolean({ description: "Owners may cancel builds; default true." })),
  allow_user_autostart: t.Optional(t.Boolean({ description: "Default true." })),
  allow_user_autostop: t.Optional(t.Boolean({ description: "Default true." })),
  failure_ttl_ms: t.Optional(ms("A failed workspace is stopped after this; 0 is never.")),
  require_active_version: t.Optional(t.Boolean()),
  wake_on_connect: t.Optional(
    wakeLevel(
      "Who can start a stopped workspace by connecting to it; default people who can start it. public: also visitors who can only open its apps.",
    ),
  ),
  default_coding_agent: t.Optional(
    t.String({
      pattern: `${CODING_AGENT_NAME}|^$`,
      maxLength: 64,
      description:
        "The default coding agent of chats and tasks in its workspaces: the name of an enabled one; empty: none.",
    }),
  ),
  allow_dotfiles: t.Optional(
    t.Boolean({ description: "Whether its workspaces install their owner's dotfiles; default true." }),
  ),
  trash_days: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: 365,
      description:
        "How many days the trash keeps the files of a deleted workspace; default 7. 0: they are deleted immediately. Requires a provisioner that can keep files.",
    }),
  ),
  snapshots_on_stop: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: 20,
      description:
        "How many snapshots created on stop each workspace keeps; 0: none are created. Requires a provisioner that supports snapshots.",
    }),
  ),
  home_backups: t.Optional(
    t.Boolean({ description: "Whether workspace files are backed up on the server's schedule; default true." }),
  ),
  max_port_share_level: t.Optional(PortShareLevel),
  use_classic_parameter_flow: t.Optional(t.Boolean()),
  cors_behavior: t.Optional(named("CorsBehavior", t.Union([t.Literal("simple"), t.Literal("passthru")]))),
};

export const CreateTemplate = namedObject("CreateTemplate", {
  name,
  template_version_id: uuid("A version without a template and with a successful import."),
  ...settings,
  dormant_ttl_ms: t.Optional(ms("Becomes time_til_dormant_ms.")),
  delete_ttl_ms: t.Optional(ms("Becomes time_til_dormant_autodelete_ms.")),
  disable_everyone_group_access: t.Optional(t.Literal(false, { description: "Members can always see a template." })),
});
export type CreateTemplate = Static<typeof CreateTemplate>;

export const PatchTemplate = namedObject("PatchTemplate", {
  name: t.Optional(name),
  ...settings,
  time_til_dormant_ms: t.Optional(ms("0 is never.")),
  time_til_dormant_autodelete_ms: t.Optional(ms("0 is never.")),
  update_workspace_last_used_at: t.Optional(
    t.Boolean({ description: "Marks its workspaces as used now, so that none becomes dormant immediately." }),
  ),
  update_workspace_dormant_at: t.Optional(
    t.Boolean({ description: "Restarts the dormancy period of its dormant workspaces." }),
  ),
  deprecation_message: t.Optional(
    linesText({
      maxLength: 4096,
      description:
        "If not empty, no new workspaces can be created, and the text is shown as the reason. An empty text reverts this.",
    }),
  ),
});
export type PatchTemplate = Static<typeof PatchTemplate>;
