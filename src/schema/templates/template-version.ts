// Wire shapes of template versions and the requests about them (facts/platform 9.3).
import { type Static, Type as t } from "@sinclair/typebox";
import { time, uuid } from "../fields.ts";
import { namedObject } from "../shape-names.ts";
import { linesText } from "../text.ts";
import { MinimalUser } from "../users/user.ts";
import { MatchedProvisioners, ProvisionerJob } from "../workspaces/job.ts";

/** Up to 64 letters, digits and `_ . -`. */
const VersionName = t.String({
  pattern: "^[a-zA-Z0-9]+(?:[_.-]{1}[a-zA-Z0-9]+)*$",
  maxLength: 64,
  description: "Up to 64 letters, digits and single `_`, `.` or `-` between them; unique within the template.",
});
const Message = linesText({ maxLength: 1_048_576, description: "What this version changes." });

export const TemplateVersion = namedObject("TemplateVersion", {
  id: uuid(),
  template_id: t.Optional(uuid("Absent if it does not belong to a template yet.")),
  organization_id: uuid(),
  name: t.String(),
  message: t.String(),
  created_at: time(),
  updated_at: time(),
  job: ProvisionerJob,
  readme: t.String({ description: "README.md of the upload; empty when it has none or is not imported yet." }),
  created_by: MinimalUser,
  archived: t.Boolean({ description: "Not offered for new builds." }),
  warnings: t.Array(t.String()),
  matched_provisioners: t.Optional(MatchedProvisioners),
  has_external_agent: t.Boolean({ description: "Its workspaces run outside of the server's control." }),
});
export type TemplateVersion = Static<typeof TemplateVersion>;

export const CreateTemplateVersion = namedObject("CreateTemplateVersion", {
  name: t.Optional(t.Union([VersionName, t.Literal("")], { description: "Empty or absent: one is chosen." })),
  message: t.Optional(Message),
  template_id: t.Optional(uuid("The template of the version; absent if the template will be created later.")),
  storage_method: t.Optional(t.Literal("file")),
  file_id: t.Optional(uuid("An upload. Exactly one of file_id and example_id.")),
  example_id: t.Optional(t.String({ maxLength: 64, description: "A built-in template: `local`." })),
  provisioner: t.Optional(t.String({ maxLength: 64, description: "Not needed: the template names it." })),
  tags: t.Optional(
    t.Record(t.String({ maxLength: 64 }), t.String({ maxLength: 256 }), {
      description: "The tags that a worker needs to take the import.",
    }),
  ),
  user_variable_values: t.Optional(
    t.Array(t.Object({ name: t.String({ maxLength: 64 }), value: t.String({ maxLength: 65_536 }) }), {
      maxItems: 128,
      description:
        "Values of the template's variables. With template_id, those left out have what the active version was given.",
    }),
  ),
});
export type CreateTemplateVersion = Static<typeof CreateTemplateVersion>;

export const PatchTemplateVersion = namedObject("PatchTemplateVersion", {
  name: t.Optional(VersionName),
  message: t.Optional(Message),
});

export const TemplateParameter = namedObject("TemplateParameter", {
  name: t.String(),
  display_name: t.String(),
  description: t.String({ description: "Markdown." }),
  description_plaintext: t.String(),
  type: t.String({ description: "string, number, bool or list(string)." }),
  form_type: t.String({ description: "The form control for it." }),
  mutable: t.Boolean({ description: "Can be changed after the workspace was created." }),
  default_value: t.String(),
  icon: t.String(),
  options: t.Array(t.Object({ name: t.String(), description: t.String(), value: t.String(), icon: t.String() }), {
    description: "If there are any, the value must be one of them.",
  }),
  validation_error: t.Optional(t.String()),
  validation_regex: t.Optional(t.String()),
  validation_min: t.Optional(t.Integer()),
  validation_max: t.Optional(t.Integer()),
  validation_monotonic: t.Optional(t.String({ description: "`increasing` or `decreasing`." })),
  required: t.Boolean({ description: "It has no default." }),
  ephemeral: t.Boolean({ description: "For this build only; not stored." }),
});
export type TemplateParameter = Static<typeof TemplateParameter>;

export const TemplateVariable = namedObject("TemplateVariable", {
  name: t.String(),
  description: t.String(),
  type: t.String(),
  value: t.String({ description: "Empty when it is sensitive." }),
  default_value: t.String({ description: "Empty when it is sensitive." }),
  required: t.Boolean({ description: "It has no default." }),
  sensitive: t.Boolean(),
});
export type TemplateVariable = Static<typeof TemplateVariable>;

export const Preset = namedObject("TemplatePreset", {
  id: uuid("Send it as template_version_preset_id."),
  name: t.String(),
  description: t.String(),
  icon: t.String(),
  default: t.Boolean({ description: "Used by default." }),
  desired_prebuild_instances: t.Union([t.Integer(), t.Null()]),
  parameters: t.Array(t.Object({ name: t.String(), value: t.String() })),
  prebuild_problem: t.Optional(
    t.String({ description: "Why fewer are ready than configured; only for template administrators." }),
  ),
});
export type Preset = Static<typeof Preset>;

/** Resources that a start would create and a stop would leave, as planned by the template. */
export const PlannedResource = namedObject("PlannedResource", {
  id: uuid(),
  created_at: time(),
  job_id: uuid(),
  workspace_transition: t.Union([t.Literal("start"), t.Literal("stop")]),
  type: t.String(),
  name: t.String(),
  hide: t.Boolean(),
  icon: t.String(),
  daily_cost: t.Integer(),
  metadata: t.Array(t.Object({ key: t.String(), value: t.String(), sensitive: t.Boolean() })),
  agents: t.Array(
    t.Object({
      id: uuid(),
      resource_id: uuid(),
      name: t.String(),
      created_at: time(),
      updated_at: time(),
      status: t.Literal("connecting"),
      lifecycle_state: t.Literal("created"),
      operating_system: t.String({ description: "Empty: that of its machine." }),
      architecture: t.String({ description: "Empty: that of its machine." }),
      directory: t.String(),
      apps: t.Array(t.Object({ id: uuid(), slug: t.String(), display_name: t.String(), icon: t.String() })),
      scripts: t.Array(t.Object({ id: uuid(), display_name: t.String() })),
    }),
  ),
});
export type PlannedResource = Static<typeof PlannedResource>;

export const TemplateExample = namedObject("TemplateExample", {
  id: t.String({ description: "Send it as example_id of a template version." }),
  name: t.String(),
  description: t.String(),
  icon: t.String(),
  provisioner: t.String({ description: "The provisioner of its workspaces." }),
  kind: t.String({ description: "The same for versions that differ only in their provisioner." }),
  markdown: t.String({ description: "Its README." }),
});
export type TemplateExample = Static<typeof TemplateExample>;
