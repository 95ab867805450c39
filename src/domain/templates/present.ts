// Presents a template.
import { toRfc3339 } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { TemplateView } from "#db/templates/templates.ts";
import type { BuildTimeStats, Template } from "#schema/templates/template.ts";
import { findSnapshotProblem, hasFiles } from "#schema/workspaces/snapshot.ts";
import type { WakeLevel } from "#schema/workspaces/wake.ts";
import { explainUnavailable } from "../builds/provisioners.ts";

export const presentTemplate = (
  { template, organization, creator, use, has_snapshot_module }: TemplateView,
  build_time_stats: BuildTimeStats,
  config: Config,
): Template => ({
  id: template.id,
  created_at: toRfc3339(template.created_at),
  updated_at: toRfc3339(template.updated_at),
  organization_id: template.organization_id,
  organization_name: organization.name,
  organization_display_name: organization.display_name,
  organization_icon: organization.icon,
  name: template.name,
  display_name: template.display_name,
  description: template.description,
  icon: template.icon,
  provisioner: template.provisioner,
  unavailable: explainUnavailable(config, template.provisioner),
  active_version_id: template.active_version_id,
  active_user_count: use.active_user_count,
  build_time_stats,
  created_by_id: template.created_by,
  created_by_name: creator.username,
  deleted: template.deleted,
  deprecated: template.deprecation_message !== "",
  deprecation_message: template.deprecation_message,
  default_ttl_ms: template.default_ttl_ms,
  activity_bump_ms: template.activity_bump_ms,
  autostop_requirement: {
    days_of_week: template.autostop_requirement_days,
    weeks: template.autostop_requirement_weeks,
  },
  autostart_requirement: { days_of_week: template.autostart_requirement_days },
  allow_user_cancel_workspace_jobs: template.allow_user_cancel_workspace_jobs,
  allow_user_autostart: template.allow_user_autostart,
  allow_user_autostop: template.allow_user_autostop,
  failure_ttl_ms: template.failure_ttl_ms,
  time_til_dormant_ms: template.time_til_dormant_ms,
  time_til_dormant_autodelete_ms: template.time_til_dormant_autodelete_ms,
  require_active_version: template.require_active_version,
  trash_days: template.trash_days,
  wake_on_connect: template.wake_on_connect as WakeLevel,
  allow_dotfiles: template.allow_dotfiles,
  snapshots_on_stop: template.snapshots_on_stop,
  default_coding_agent: template.default_coding_agent,
  home_backups: template.home_backups,
  snapshots_unsupported:
    findSnapshotProblem(template.provisioner, { has_snapshot_module: has_snapshot_module === 1 }) ?? "",
  has_trash: hasFiles(template.provisioner),
  max_port_share_level: template.max_port_share_level,
  use_classic_parameter_flow: template.use_classic_parameter_flow,
  cors_behavior: template.cors_behavior,
});
