// Wire shapes of templates (facts/platform 9.3).

import { type Static, Type as t } from "@sinclair/typebox";
import { WEEKDAYS } from "#base/schedule/weekdays.ts";
import { CODING_AGENT_NAME } from "../ai/coding-agents.ts";
import { iconUrl, MAX_DURATION_MS, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { iconText, linesText, trimmedText } from "../text.ts";
import { PortShareLevel } from "../workspaces/port-share.ts";
import { wakeLevel } from "../workspaces/wake.ts";

const ms = (description: string) => t.Integer({ minimum: 0, maximum: MAX_DURATION_MS, description });

const days = (description: string) => t.Array(Weekday, { maxItems: 7, uniqueItems: true, description });
const Weekday = named("Weekday", t.Union(WEEKDAYS.map((day) => t.Literal(day))));

const STOP_DAYS =
  "The days on which running workspaces must stop, in their owners' quiet hours; empty for no required stop.";
const STOP_WEEKS = "The interval between weeks with required stops: 1 for every week.";
const START_DAYS = "The days on which autostart may start workspaces.";

const Autostop = namedObject("TemplateAutostop", {
  days_of_week: days(STOP_DAYS),
  weeks: t.Optional(t.Integer({ minimum: 0, maximum: 16, description: `${STOP_WEEKS} 0 means 1.` })),
});
const Autostart = namedObject("TemplateAutostart", { days_of_week: days(`${START_DAYS} If empty, none.`) });

const Percentiles = namedObject("BuildTimePercentiles", {
  P50: t.Union([t.Integer(), t.Null()], {
    description: "The median build time in milliseconds; null if there are no builds.",
  }),
  P95: t.Union([t.Integer(), t.Null()], {
    description: "The 95th percentile of the build time in milliseconds; null if there are no builds.",
  }),
});
export const BuildTimeStats = namedObject("BuildTimeStats", {
  start: Percentiles,
  stop: Percentiles,
  delete: Percentiles,
});
export type BuildTimeStats = Static<typeof BuildTimeStats>;

const CLASSIC_FLOW =
  "Whether clients show all parameters together, without `dynamic-parameters`. The server doesn't use it.";
const CORS = "`simple` or `passthru`. Stored for compatibility; it has no effect on this server.";

export const Template = namedObject("Template", {
  id: uuid(),
  created_at: time(),
  updated_at: time(),
  organization_id: uuid(),
  organization_name: t.String(),
  organization_display_name: t.String(),
  organization_icon: iconUrl,
  name: t.String({ description: "The name of the template, used in paths. Unique within the organization." }),
  display_name: t.String({ description: "The display name of the template. If empty, its name is shown." }),
  description: t.String(),
  icon: iconUrl,
  provisioner: t.String({
    description: "The provisioner of the template's workspaces: local, docker, terraform, external or echo.",
  }),
  unavailable: t.String({
    description: "Why the server's settings let no workspace of this template start; empty if they do.",
  }),
  active_version_id: uuid("The version that new workspaces use."),
  active_user_count: t.Integer({ description: "The number of users who have a workspace with this template." }),
  build_time_stats: { ...BuildTimeStats, description: "How long recent successful builds took, by transition." },
  created_by_id: uuid("The ID of the user who created the template."),
  created_by_name: t.String({ description: "The username of that user." }),
  deleted: t.Boolean({ description: "Always false, because deleted templates are not returned." }),
  deprecated: t.Boolean({
    description: "Whether the template is deprecated. No new workspaces can be created from it.",
  }),
  deprecation_message: t.String({
    description: "The reason for the deprecation; empty if the template isn't deprecated.",
  }),
  default_ttl_ms: t.Integer({
    description: "How long a workspace runs after it starts, in milliseconds; 0 means no limit.",
  }),
  activity_bump_ms: t.Integer({ description: "How much activity extends a workspace's deadline, in milliseconds." }),
  autostop_requirement: t.Object({
    days_of_week: t.Array(t.String(), { description: STOP_DAYS }),
    weeks: t.Integer({ description: STOP_WEEKS }),
  }),
  autostart_requirement: t.Object({ days_of_week: t.Array(t.String(), { description: START_DAYS }) }),
  allow_user_cancel_workspace_jobs: t.Boolean({
    description: "Whether workspace owners can cancel builds that have started. Owners of the deployment always can.",
  }),
  allow_user_autostart: t.Boolean({ description: "Whether users can set an autostart schedule." }),
  allow_user_autostop: t.Boolean({
    description: "Whether users can change autostop. If not, `default_ttl_ms` applies.",
  }),
  failure_ttl_ms: t.Integer({
    description: "How long after a failed start a workspace is stopped, in milliseconds; 0 means never.",
  }),
  time_til_dormant_ms: t.Integer({
    description: "How long a workspace can be inactive before it becomes dormant, in milliseconds; 0 means never.",
  }),
  time_til_dormant_autodelete_ms: t.Integer({
    description: "How long a workspace can be dormant before it is deleted, in milliseconds; 0 means never.",
  }),
  require_active_version: t.Boolean({
    description:
      "Whether workspaces start only with the active version. Template administrators can still choose others.",
  }),
  snapshots_on_stop: t.Integer({
    description: "The number of stop snapshots that each workspace keeps; 0 means that none are created.",
  }),
  home_backups: t.Boolean({
    description: "Whether workspaces' files are backed up on the server's schedule.",
  }),
  trash_days: t.Integer({
    description: "How many days deleted workspaces can be restored; 0 means that they can't be.",
  }),
  wake_on_connect: wakeLevel("Who can start a stopped workspace by connecting to it."),
  default_coding_agent: t.String({
    description: "The default coding agent for chats and tasks in the template's workspaces; empty if not set.",
  }),
  allow_dotfiles: t.Boolean({ description: "Whether workspaces install their owner's dotfiles." }),
  snapshots_unsupported: t.String({ description: "Why workspaces can't have snapshots; empty if they can." }),
  has_trash: t.Boolean({ description: "Whether deleted workspaces can be moved to the trash with their files." }),
  max_port_share_level: t.String({
    description:
      "The most open level at which ports and apps can be shared: owner, organization, authenticated or public.",
  }),
  use_classic_parameter_flow: t.Boolean({ description: CLASSIC_FLOW }),
  cors_behavior: t.String({ description: CORS }),
});
export type Template = Static<typeof Template>;

const name = t.String({
  pattern: "^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$",
  minLength: 1,
  maxLength: 32,
  description: "The name of the template: 1 to 32 letters and digits, in groups joined by single hyphens.",
});

const settings = {
  display_name: t.Optional(trimmedText({ maxLength: 64, description: "The display name of the template." })),
  description: t.Optional(linesText({ maxLength: 4096, description: "A description of the template for users." })),
  icon: t.Optional(iconText({ maxLength: 4096 })),
  default_ttl_ms: t.Optional(ms("How long a workspace runs after it starts, in milliseconds; 0 means no limit.")),
  activity_bump_ms: t.Optional(
    ms("How much activity extends a workspace's deadline, in milliseconds; default one hour."),
  ),
  autostop_requirement: t.Optional({
    ...Autostop,
    description: "The required stops, for example to install updates; default: none.",
  }),
  autostart_requirement: t.Optional({ ...Autostart, description: "When autostart is allowed; default: every day." }),
  allow_user_cancel_workspace_jobs: t.Optional(
    t.Boolean({ description: "Whether workspace owners can cancel builds; default true." }),
  ),
  allow_user_autostart: t.Optional(
    t.Boolean({ description: "Whether users can set an autostart schedule; default true." }),
  ),
  allow_user_autostop: t.Optional(t.Boolean({ description: "Whether users can change autostop; default true." })),
  failure_ttl_ms: t.Optional(
    ms("How long after a failed start a workspace is stopped, in milliseconds; 0 means never."),
  ),
  require_active_version: t.Optional(
    t.Boolean({
      description:
        "Whether workspaces start only with the active version; default false. Template administrators can still choose others.",
    }),
  ),
  wake_on_connect: t.Optional(
    wakeLevel(
      "Who can start a stopped workspace by connecting to it; default: users who can start it. `public` includes visitors who can only open its apps.",
    ),
  ),
  default_coding_agent: t.Optional(
    t.String({
      pattern: `${CODING_AGENT_NAME}|^$`,
      maxLength: 64,
      description:
        "The default coding agent for chats and tasks in the template's workspaces: the name of an enabled agent, or empty for none.",
    }),
  ),
  allow_dotfiles: t.Optional(
    t.Boolean({ description: "Whether workspaces install their owner's dotfiles; default true." }),
  ),
  trash_days: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: 365,
      description:
        "How many days the trash keeps the files of a deleted workspace; default 7. 0 deletes them immediately. Requires a provisioner that can keep files.",
    }),
  ),
  snapshots_on_stop: t.Optional(
    t.Integer({
      minimum: 0,
      maximum: 20,
      description:
        "The number of stop snapshots that each workspace keeps; 0 means that none are created. Requires a provisioner that supports snapshots.",
    }),
  ),
  home_backups: t.Optional(
    t.Boolean({ description: "Whether workspaces' files are backed up on the server's schedule; default true." }),
  ),
  max_port_share_level: t.Optional({
    ...PortShareLevel,
    description:
      "The most open level at which ports and apps can be shared; default `public`. Lowering it also lowers existing shares.",
  }),
  use_classic_parameter_flow: t.Optional(t.Boolean({ description: `${CLASSIC_FLOW} Default true.` })),
  cors_behavior: t.Optional(named("CorsBehavior", oneOf(["simple", "passthru"], CORS))),
};

export const CreateTemplate = namedObject("CreateTemplate", {
  name,
  template_version_id: uuid("The ID of a version that was imported successfully and doesn't belong to a template."),
  ...settings,
  dormant_ttl_ms: t.Optional(
    ms("How long a workspace can be inactive before it becomes dormant, in milliseconds. Sets `time_til_dormant_ms`."),
  ),
  delete_ttl_ms: t.Optional(
    ms(
      "How long a workspace can be dormant before it is deleted, in milliseconds. Sets `time_til_dormant_autodelete_ms`.",
    ),
  ),
  disable_everyone_group_access: t.Optional(
    t.Literal(false, { description: "Must be false: members can always see a template." }),
  ),
});
export type CreateTemplate = Static<typeof CreateTemplate>;

export const PatchTemplate = namedObject("PatchTemplate", {
  name: t.Optional(name),
  ...settings,
  time_til_dormant_ms: t.Optional(
    ms("How long a workspace can be inactive before it becomes dormant, in milliseconds; 0 means never."),
  ),
  time_til_dormant_autodelete_ms: t.Optional(
    ms("How long a workspace can be dormant before it is deleted, in milliseconds; 0 means never."),
  ),
  update_workspace_last_used_at: t.Optional(
    t.Boolean({
      description: "Whether to mark the template's workspaces as used now, so that none becomes dormant immediately.",
    }),
  ),
  update_workspace_dormant_at: t.Optional(
    t.Boolean({ description: "Whether to restart the dormancy period of the template's dormant workspaces." }),
  ),
  deprecation_message: t.Optional(
    linesText({
      maxLength: 4096,
      description:
        "The reason shown for the deprecation. If not empty, no new workspaces can be created. An empty string ends the deprecation.",
    }),
  ),
});
export type PatchTemplate = Static<typeof PatchTemplate>;
