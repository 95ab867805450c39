// Presents a template version's parameters, variables, presets and planned resources to API callers. IDs are derived from the version's ID
// and from names, so they are stable. Pure.
import { sha256 } from "#base/ids.ts";
import type { Manifest, ManifestParameter, ManifestResource } from "#schema/templates/manifest.ts";
import type {
  PlannedResource,
  Preset,
  TemplateParameter,
  TemplateVariable,
} from "#schema/templates/template-version.ts";
import { resolvePrebuilds } from "#schema/workspaces/prebuilds.ts";
import { formatDefault, getFormType, getType } from "./parameters.ts";
import { toPresetId } from "./presets.ts";

/** Returns a stable ID (a UUID of version 8) for an object that has only a name. */
const toPlannedId = (version_id: string, ...names: readonly string[]): string => {
  const hex = sha256([version_id, ...names].join("\0"));
  const [a, b, c, d, e] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(13, 16), hex.slice(17, 20), hex.slice(20, 32)];
  return `${a}-${b}-8${c}-8${d}-${e}`;
};

export const presentPresets = (manifest: Manifest, version_id: string): Preset[] =>
  (manifest.presets ?? []).map((preset) => ({
    id: toPresetId(version_id, preset.name),
    name: preset.name,
    description: preset.description ?? "",
    icon: preset.icon ?? "",
    default: preset.default ?? false,
    desired_prebuild_instances: preset.prebuilds === undefined ? null : resolvePrebuilds(preset).instances,
    parameters: Object.entries(preset.parameters).map(([name, value]) => ({ name, value: String(value) })),
  }));

export const presentParameters = (manifest: Manifest): TemplateParameter[] =>
  (manifest.parameters ?? []).map(presentParameter);

const presentParameter = (parameter: ManifestParameter): TemplateParameter => {
  const { validation } = parameter;
  return {
    name: parameter.name,
    display_name: parameter.display_name ?? "",
    description: parameter.description ?? "",
    description_plaintext: stripMarkdown(parameter.description ?? ""),
    type: getType(parameter),
    form_type: getFormType(parameter),
    mutable: parameter.mutable ?? false,
    default_value: formatDefault(parameter) ?? "",
    icon: parameter.icon ?? "",
    options: (parameter.options ?? []).map(({ name, value, description = "", icon = "" }) => ({
      name,
      value,
      description,
      icon,
    })),
    validation_error: validation?.error,
    validation_regex: validation?.regex,
    validation_min: validation?.min,
    validation_max: validation?.max,
    validation_monotonic: validation?.monotonic,
    required: parameter.default === undefined && parameter.when === undefined,
    ephemeral: parameter.ephemeral ?? false,
  };
};

/** Strips the most common Markdown syntax. */
const stripMarkdown = (markdown: string): string =>
  markdown
    .replace(/!?\[([^[\]]*)\]\([^()]*\)/g, "$1")
    .replace(/^ {0,3}#{1,6} +/gm, "")
    .replace(/[*_`]{1,3}([^*_`]+)[*_`]{1,3}/g, "$1")
    .trim();

/** `values`: the values given to the version. Omits sensitive values. */
export const presentVariables = (manifest: Manifest, values: Readonly<Record<string, string>>): TemplateVariable[] =>
  (manifest.variables ?? []).map((variable) => {
    const sensitive = variable.sensitive ?? false;
    const fallback = formatDefault(variable);
    const given = Object.hasOwn(values, variable.name) ? values[variable.name] : undefined;
    return {
      name: variable.name,
      description: variable.description ?? "",
      type: variable.declared_type ?? variable.type ?? "string",
      value: sensitive ? "" : (given ?? fallback ?? ""),
      default_value: sensitive ? "" : (fallback ?? ""),
      required: fallback === undefined,
      sensitive,
    };
  });

/** Returns the resources that a start would create, and the resources that a stop would keep. `created_at`: the time of the import. */
export const presentPlannedResources = (
  manifest: Manifest,
  version: { readonly id: string; readonly job_id: string; readonly created_at: string },
): PlannedResource[] => [
  ...listPlanned(manifest, manifest.resources, "start", version),
  ...listPlanned(manifest, manifest.stop_resources ?? [], "stop", version),
];

const listPlanned = (
  manifest: Manifest,
  resources: readonly ManifestResource[],
  transition: "start" | "stop",
  version: { readonly id: string; readonly job_id: string; readonly created_at: string },
): PlannedResource[] =>
  resources.map((resource, i) => {
    const { job_id, created_at } = version;
    // Names of resources are unique in a template.yaml, but not in a Terraform template.
    const identity = manifest.provisioner === "terraform" ? [transition, String(i)] : [];
    const id = toPlannedId(version.id, "resource", resource.name, ...identity);
    return {
      id,
      created_at,
      job_id,
      workspace_transition: transition,
      type: resource.type ?? `${manifest.provisioner}_workspace`,
      name: resource.name,
      hide: resource.hide ?? false,
      icon: resource.icon ?? "",
      daily_cost: resource.daily_cost ?? 0,
      metadata: (resource.metadata ?? []).map(({ key, value, sensitive = false }) => ({
        key,
        value: sensitive ? "" : value,
        sensitive,
      })),
      agents: (resource.agents ?? []).map((agent) => ({
        id: toPlannedId(version.id, "agent", agent.name, ...identity),
        resource_id: id,
        name: agent.name,
        created_at,
        updated_at: created_at,
        status: "connecting",
        lifecycle_state: "created",
        operating_system: agent.os ?? "",
        architecture: agent.arch ?? "",
        directory: agent.directory ?? "",
        apps: (agent.apps ?? []).map((app) => ({
          id: toPlannedId(version.id, "app", agent.name, app.slug, ...identity),
          slug: app.slug,
          display_name: app.display_name ?? app.slug,
          icon: app.icon ?? "",
        })),
        scripts: (agent.scripts ?? []).map((script, i) => ({
          id: toPlannedId(version.id, "script", agent.name, String(i), ...identity),
          display_name: script.display_name,
        })),
      })),
    };
  });
