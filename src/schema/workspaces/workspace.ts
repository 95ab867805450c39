// Wire shapes of workspaces (specification "Workspace", facts/platform 3.2).
import { type Static, Type as t } from "@sinclair/typebox";
import { iconUrl, optionalTime, time, uuid } from "../fields.ts";
import { NullableUuid } from "../nullable-uuid.ts";
import { oneOf } from "../one-of.ts";
import { named, namedObject } from "../shape-names.ts";
import { RepositoryAsked } from "../templates/repository.ts";
import { Template } from "../templates/template.ts";
import { lineText } from "../text.ts";
import { AppStatus } from "./app.ts";
import { Build, newParameterValues } from "./build.ts";

const automaticUpdates = named(
  "AutomaticUpdates",
  oneOf(
    ["always", "never"],
    "Whether the workspace updates automatically. `always`: each start uses the template's active version.",
  ),
);

/** The members about organization and template, which all shapes of a workspace have. */
export const organizationAndTemplate = {
  organization_id: uuid(),
  organization_name: t.String(),
  template_id: uuid(),
  template_name: t.String(),
  template_display_name: t.String(),
  template_icon: iconUrl,
};

export const Workspace = namedObject("Workspace", {
  id: uuid(),
  created_at: time(),
  updated_at: time(),
  owner_id: uuid(),
  owner_name: t.String({ description: "The username of the workspace's owner." }),
  owner_avatar_url: t.String({ description: "The URL of the owner's avatar; may be empty." }),
  ...organizationAndTemplate,
  template_allow_user_cancel_workspace_jobs: Template.properties.allow_user_cancel_workspace_jobs,
  template_active_version_id: uuid("The ID of the template's active version."),
  template_require_active_version: Template.properties.require_active_version,
  template_use_classic_parameter_flow: Template.properties.use_classic_parameter_flow,
  latest_build: { ...Build, description: "The latest build. Its status is that of the workspace." },
  latest_app_status: t.Optional(
    t.Union([AppStatus, t.Null()], {
      description: "The newest status that an app of the workspace reported, or null.",
    }),
  ),
  outdated: t.Boolean({ description: "Whether the latest build uses a version other than the template's active one." }),
  name: t.String(),
  autostart_schedule: t.Optional(t.String({ description: "The autostart schedule; absent if autostart is off." })),
  ttl_ms: t.Optional(
    t.Integer({ description: "The time until autostop after a start, in milliseconds; absent if autostop is off." }),
  ),
  last_used_at: time("When the workspace was last used; updated at most once a minute."),
  deleting_at: optionalTime("When the dormant workspace is deleted; absent if it isn't."),
  dormant_at: optionalTime("When the workspace became dormant; absent if it isn't dormant."),
  next_start_at: optionalTime("When autostart next starts the workspace."),
  health: t.Object({
    healthy: t.Boolean({ description: "Whether no agent is unhealthy. True for stopped workspaces." }),
    failing_agents: t.Array(uuid(), { description: "The IDs of unhealthy agents." }),
  }),
  automatic_updates: automaticUpdates,
  allow_renames: t.Boolean({ description: "Whether this server allows workspaces to be renamed." }),
  favorite: t.Boolean({ description: "Whether the caller owns the workspace and marked it as a favorite." }),
  is_prebuild: t.Boolean({ description: "Whether this is a prebuilt workspace that no user has claimed yet." }),
  shared_with: t.Array(
    t.Object({
      id: uuid("The ID of the user or group."),
      actor_type: oneOf(["user", "group"]),
      name: t.String({ description: "The username, or the name of the group." }),
      avatar_url: t.Optional(t.String({ description: "The URL of the avatar; absent if the user or group has none." })),
      roles: t.Array(t.String(), { description: "The role on the workspace, with the values of `WorkspaceRole`." }),
    }),
    { description: "The users and groups that the workspace is shared with." },
  ),
  task_id: NullableUuid,
});
export type Workspace = Static<typeof Workspace>;

export const Workspaces = namedObject("Workspaces", {
  workspaces: t.Array(Workspace),
  count: t.Integer({ description: "The total number of matches, not only on this page." }),
});
export type Workspaces = Static<typeof Workspaces>;

export const RenameWorkspace = namedObject("RenameWorkspace", {
  name: t.Optional(
    lineText({ description: "The new name, under the rules for workspace names. If absent, it is unchanged." }),
  ),
});

export const PutAutomaticUpdates = namedObject("PutAutomaticUpdates", { automatic_updates: automaticUpdates });

/** What can be open in a workspace (facts/platform 1.1). */
export const USAGE_APPS = ["vscode", "jetbrains", "reconnecting-pty", "ssh"] as const;

export const WorkspaceUsage = namedObject("WorkspaceUsage", {
  agent_id: t.Optional(
    t.String({ description: "The ID of an agent of the latest build. Set together with `app_name`." }),
  ),
  app_name: t.Optional(
    t.String({
      description: "The app that was used: vscode, jetbrains, reconnecting-pty or ssh. Set together with `agent_id`.",
    }),
  ),
});
export type WorkspaceUsage = Static<typeof WorkspaceUsage>;

/** The name rule of facts/platform 3.1. */
export const NAME_PATTERN = "^[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*$";

/** The body of both routes that create a workspace. */
export const CreateWorkspace = namedObject("CreateWorkspace", {
  name: lineText({
    description:
      "The name of the workspace: 1 to 32 letters and digits in groups joined by single hyphens. Unique among the owner's workspaces.",
  }),
  template_id: t.Optional(
    uuid("The ID of a template, whose active version is used. Can be omitted with `repository`."),
  ),
  template_version_id: t.Optional(uuid("The ID of a template version. Use instead of `template_id`.")),
  template_version_preset_id: t.Optional(uuid("The ID of a preset of the template version.")),
  autostart_schedule: t.Optional(
    t.Union([t.String(), t.Null()], {
      description:
        "The autostart schedule, as `CRON_TZ=<zone> <minute> <hour> * * <days>`. If absent, autostart is off.",
    }),
  ),
  ttl_ms: t.Optional(
    t.Union([t.Integer(), t.Null()], {
      description: "The time until autostop in milliseconds. Absent, null or 0 applies the template's default.",
    }),
  ),
  automatic_updates: t.Optional(
    t.String({ description: "Whether the workspace updates automatically: `always` or `never` (default)." }),
  ),
  rich_parameter_values: newParameterValues,
  repository: t.Optional({
    ...RepositoryAsked,
    description:
      "The repository to open. Fills the template's parameter for a repository, or chooses a template for it.",
  }),
});
export type CreateWorkspace = Static<typeof CreateWorkspace>;
