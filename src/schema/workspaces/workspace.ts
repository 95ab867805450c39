// Wire shapes of workspaces (specification "Workspace", facts/platform 3.2).
import { type Static, Type as t } from "@sinclair/typebox";
import { optionalTime, time, uuid } from "../fields.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { RepositoryAsked } from "../templates/repository.ts";
import { lineText } from "../text.ts";
import { AppStatus } from "./app.ts";
import { Build, ParameterValue } from "./build.ts";

const automaticUpdates = named(
  "AutomaticUpdates",
  oneOf(["always", "never"], "`always`: each start uses the template's active version."),
);

/** Organization and template, as in every shape of a workspace. */
export const belonging = {
  organization_id: uuid(),
  organization_name: t.String(),
  template_id: uuid(),
  template_name: t.String(),
  template_display_name: t.String(),
  template_icon: t.String(),
};

export const Workspace = namedObject("Workspace", {
  id: uuid(),
  created_at: time(),
  updated_at: time(),
  owner_id: uuid(),
  owner_name: t.String({ description: "The owner's username." }),
  owner_avatar_url: t.String(),
  ...belonging,
  template_allow_user_cancel_workspace_jobs: t.Boolean(),
  template_active_version_id: uuid(),
  template_require_active_version: t.Boolean(),
  template_use_classic_parameter_flow: t.Boolean(),
  latest_build: Build,
  latest_app_status: t.Optional(t.Union([AppStatus, t.Null()])),
  outdated: t.Boolean({ description: "The latest build uses another version than the template's active one." }),
  name: t.String(),
  autostart_schedule: t.Optional(t.String({ description: "Absent if it has no autostart schedule." })),
  ttl_ms: t.Optional(
    t.Integer({ description: "Milliseconds until autostop after a start; absent if autostop is off." }),
  ),
  last_used_at: time(),
  deleting_at: optionalTime("When a dormant workspace is deleted; absent when it is not."),
  dormant_at: optionalTime("Since when it is dormant; absent when it is not."),
  next_start_at: optionalTime("The next autostart."),
  health: t.Object({
    healthy: t.Boolean(),
    failing_agents: t.Array(uuid(), { description: "Agents that are not healthy." }),
  }),
  automatic_updates: automaticUpdates,
  allow_renames: t.Boolean(),
  favorite: t.Boolean({ description: "True only for the owner, if they marked it as a favorite." }),
  is_prebuild: t.Boolean(),
  shared_with: t.Array(
    t.Object({
      id: uuid(),
      actor_type: oneOf(["user", "group"]),
      name: t.String(),
      avatar_url: t.Optional(t.String()),
      roles: t.Array(t.String()),
    }),
  ),
  task_id: NullableUuid,
});
export type Workspace = Static<typeof Workspace>;

export const Workspaces = namedObject("Workspaces", {
  workspaces: t.Array(Workspace),
  count: t.Integer({ description: "The number of all matches, not only of this page." }),
});
export type Workspaces = Static<typeof Workspaces>;

export const RenameWorkspace = namedObject("RenameWorkspace", {
  name: t.Optional(lineText({ description: "The name pattern of new workspaces; absent: unchanged." })),
});

export const PutAutomaticUpdates = namedObject("PutAutomaticUpdates", { automatic_updates: automaticUpdates });

/** What can be open in a workspace (facts/platform 1.1). */
export const USAGE_APPS = ["vscode", "jetbrains", "reconnecting-pty", "ssh"] as const;

export const WorkspaceUsage = namedObject("WorkspaceUsage", {
  agent_id: t.Optional(t.String({ description: "An agent of the latest build; given together with app_name." })),
  app_name: t.Optional(t.String({ description: "vscode, jetbrains, reconnecting-pty or ssh." })),
});
export type WorkspaceUsage = Static<typeof WorkspaceUsage>;

/** The name rule of facts/platform 3.1. */
export const NAME_PATTERN = "^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$";

/** The body of both routes that create a workspace. */
export const CreateWorkspace = namedObject("CreateWorkspace", {
  name: lineText({
    description: "1 to 32 letters and digits in groups joined by single hyphens; unique among the owner's workspaces.",
  }),
  template_id: t.Optional(uuid("Its active version is used. May be left out with `repository`.")),
  template_version_id: t.Optional(uuid("Instead of template_id.")),
  template_version_preset_id: t.Optional(uuid("A preset of that version.")),
  autostart_schedule: t.Optional(
    t.Union([t.String(), t.Null()], { description: "CRON_TZ=<zone> <minute> <hour> * * <days>; absent for none." }),
  ),
  ttl_ms: t.Optional(
    t.Union([t.Integer(), t.Null()], { description: "Milliseconds; absent, null or 0: the template's default." }),
  ),
  automatic_updates: t.Optional(t.String({ description: "always or never (default)." })),
  rich_parameter_values: t.Optional(t.Array(ParameterValue, { maxItems: 256 })),
  repository: t.Optional(RepositoryAsked),
});
export type CreateWorkspace = Static<typeof CreateWorkspace>;
