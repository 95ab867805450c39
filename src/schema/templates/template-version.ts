// Wire shapes of template versions and the requests about them (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { WorkspaceAgent } from "../agents/agent.ts";
import { iconUrl, time, uuid } from "../fields.ts";
import { oneOf } from "../one-of.ts";
import { namedObject } from "../shape-names.ts";
import { linesText } from "../text.ts";
import { MinimalUser } from "../users/user.ts";
import { App } from "../workspaces/app.ts";
import { MatchedProvisioners, ProvisionerJob } from "../workspaces/job.ts";
import { Resource } from "../workspaces/resource.ts";

/** Up to 64 letters, digits and `_ . -`. */
const VersionName = t.String({
  pattern: "^[a-zA-Z0-9]+(?:[_.-]{1}[a-zA-Z0-9]+)*$",
  maxLength: 64,
  description:
    "The name of the version: up to 64 letters and digits, with single `_`, `.` or `-` between them. Unique within the template.",
});
const Message = linesText({ maxLength: 1_048_576, description: "A description of what changed in this version." });

export const TemplateVersion = namedObject("TemplateVersion", {
  id: uuid(),
  template_id: t.Optional(uuid("The ID of the template; absent if the version doesn't belong to a template yet.")),
  organization_id: uuid(),
  name: t.String(),
  message: t.String({ description: Message.description }),
  created_at: time(),
  updated_at: time(),
  job: {
    ...ProvisionerJob,
    description: "The job that imports the version. The version can be used once it has succeeded.",
  },
  readme: t.String({
    description: "The README.md of the upload; empty if the upload has none or the import has not finished.",
  }),
  created_by: MinimalUser,
  archived: t.Boolean({
    description: "Whether the version is archived. Archived versions are not offered for new builds.",
  }),
  warnings: t.Array(t.String(), { description: "Always empty." }),
  matched_provisioners: t.Optional({ ...MatchedProvisioners, description: "The workers that can run the import." }),
  has_external_agent: t.Boolean({ description: "Whether workspaces run on machines that the server doesn't control." }),
});
export type TemplateVersion = Static<typeof TemplateVersion>;

export const CreateTemplateVersion = namedObject("CreateTemplateVersion", {
  name: t.Optional(
    t.Union([VersionName, t.Literal("")], {
      description: "The name of the version. If empty or absent, one is generated.",
    }),
  ),
  message: t.Optional(Message),
  template_id: t.Optional(uuid("The ID of the template; absent if the template will be created later.")),
  storage_method: t.Optional(t.Literal("file", { description: "Must be `file` or absent." })),
  file_id: t.Optional(uuid("The ID of an upload. Set either this or `example_id`.")),
  example_id: t.Optional(t.String({ maxLength: 64, description: "The ID of a built-in template, such as `local`." })),
  provisioner: t.Optional(
    t.String({ maxLength: 64, description: "The provisioner. Optional, because the template specifies it." }),
  ),
  tags: t.Optional(
    t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 256 }), {
      description: "The tags that a worker must have to run the import.",
    }),
  ),
  user_variable_values: t.Optional(
    t.Array(
      t.Object({
        name: t.String({ maxLength: 64, description: "The name of the variable." }),
        value: t.String({ maxLength: 65_536, description: "The value as text, such as `3` or `true`." }),
      }),
      {
        maxItems: 128,
        description:
          "Values of the template's variables. With `template_id`, omitted variables keep the values of the active version.",
      },
    ),
  ),
});
export type CreateTemplateVersion = Static<typeof CreateTemplateVersion>;

export const PatchTemplateVersion = namedObject("PatchTemplateVersion", {
  name: t.Optional(VersionName),
  message: t.Optional(Message),
});

export const TemplateParameter = namedObject("TemplateParameter", {
  name: t.String({ description: "The name of the parameter. Values are sent under it." }),
  display_name: t.String({ description: "The label of the parameter in forms. If empty, its name is shown." }),
  description: t.String({ description: "The description of the parameter, in Markdown." }),
  description_plaintext: t.String({ description: "The description without Markdown." }),
  type: t.String({ description: "The type of the value: string, number, bool or list(string)." }),
  form_type: t.String({ description: "The form control for the parameter." }),
  mutable: t.Boolean({ description: "Whether the value can be changed after the workspace is created." }),
  default_value: t.String({ description: "The default as text; empty if `required` is true." }),
  icon: iconUrl,
  options: t.Array(
    t.Object({
      name: t.String({ description: "The label of the option in forms." }),
      description: t.String(),
      value: t.String({ description: "The value that the option stands for." }),
      icon: iconUrl,
    }),
    { description: "The allowed values. If empty, any value is allowed." },
  ),
  validation_error: t.Optional(
    t.String({ description: "The error that is shown for invalid values; empty for a general one." }),
  ),
  validation_regex: t.Optional(t.String({ description: "The regular expression that a string must match." })),
  validation_min: t.Optional(t.Integer({ description: "The minimum of a number." })),
  validation_max: t.Optional(t.Integer({ description: "The maximum of a number." })),
  validation_monotonic: t.Optional(
    t.String({ description: "Whether the number may only grow or shrink: `increasing` or `decreasing`." }),
  ),
  required: t.Boolean({ description: "Whether a value is required because the parameter has no default." }),
  ephemeral: t.Boolean({ description: "Whether the value applies to a single build and is not stored." }),
});
export type TemplateParameter = Static<typeof TemplateParameter>;

export const TemplateVariable = namedObject("TemplateVariable", {
  name: t.String(),
  description: t.String(),
  type: t.String({ description: "The type of the value: string, number or bool, or a Terraform type." }),
  value: t.String({ description: "The value of the variable; empty if it is sensitive." }),
  default_value: t.String({ description: "The default value; empty if the variable is sensitive." }),
  required: t.Boolean({ description: "Whether a value is required because the variable has no default." }),
  sensitive: t.Boolean({ description: "Whether the value is secret and never shown." }),
});
export type TemplateVariable = Static<typeof TemplateVariable>;

export const Preset = namedObject("TemplatePreset", {
  id: uuid("The ID of the preset. Send it as `template_version_preset_id`."),
  name: t.String(),
  description: t.String(),
  icon: iconUrl,
  default: t.Boolean({ description: "Whether the preset is selected by default." }),
  desired_prebuild_instances: t.Union([t.Integer(), t.Null()], {
    description:
      "The number of prebuilt workspaces that are kept ready outside of scheduled times; null if the preset has none.",
  }),
  parameters: t.Array(t.Object({ name: t.String(), value: t.String() }), {
    description: "The parameter values that the preset sets.",
  }),
  prebuild_problem: t.Optional(
    t.String({
      description: "Why fewer prebuilt workspaces are ready than configured. Only returned to template administrators.",
    }),
  ),
});
export type Preset = Static<typeof Preset>;

/** Resources that a start would create and a stop would leave, as planned by the template. */
export const PlannedResource = namedObject("PlannedResource", {
  id: uuid(),
  created_at: time(),
  job_id: uuid("The ID of the job that imported or tried the template version."),
  workspace_transition: oneOf(["start", "stop"], "Whether a started or a stopped workspace has the resource."),
  type: Resource.properties.type,
  name: t.String(),
  hide: Resource.properties.hide,
  icon: Resource.properties.icon,
  daily_cost: Resource.properties.daily_cost,
  metadata: Resource.properties.metadata,
  agents: t.Array(
    t.Object({
      id: uuid(),
      resource_id: uuid("The ID of the resource that runs the agent."),
      name: t.String(),
      created_at: time(),
      updated_at: time(),
      status: t.Literal("connecting"),
      lifecycle_state: t.Literal("created"),
      operating_system: t.String({ description: "The agent's operating system. If empty, that of its machine." }),
      architecture: t.String({ description: "The agent's CPU architecture. If empty, that of its machine." }),
      directory: WorkspaceAgent.properties.directory,
      apps: t.Array(
        t.Object({
          id: uuid(),
          slug: App.properties.slug,
          display_name: t.String(),
          icon: App.properties.icon,
        }),
      ),
      scripts: t.Array(t.Object({ id: uuid(), display_name: t.String() })),
    }),
  ),
});
export type PlannedResource = Static<typeof PlannedResource>;

export const TemplateExample = namedObject("TemplateExample", {
  id: t.String({ description: "The ID of the example. Send it as `example_id` of a template version." }),
  name: t.String(),
  description: t.String(),
  icon: iconUrl,
  provisioner: t.String({ description: "The provisioner of the example's workspaces." }),
  kind: t.String({
    description: "The kind of the example. Examples that differ only in their provisioner have the same kind.",
  }),
  unavailable: t.String({ description: "Why the example's workspaces can't start on this server; empty if they can." }),
  markdown: t.String({ description: "The example's README, in Markdown." }),
});
export type TemplateExample = Static<typeof TemplateExample>;
