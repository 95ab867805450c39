// Maps a template's form: parameters, presets, accounts, tags (facts/terraform 3.16 to 3.20, 3.23). Pure.
import { tryParseJson } from "#base/json/read.ts";
import { type Instance, toBlocks, toFlag, toNumber, toText, toTexts, type Values } from "./document.ts";
import { type MappedParameter, type MappedPreset, MappingError } from "./mapped.ts";

const selectDataSources = (instances: readonly Instance[], type: string): Instance[] =>
  instances.filter((instance) => instance.mode === "data" && instance.type === type);

/** Returns the parameters in display order. Throws MappingError for a name that is used twice or cannot be stored. */
export const toParameters = (instances: readonly Instance[]): MappedParameter[] => {
  const parameters = selectDataSources(instances, "coder_parameter").map(toParameter);
  const names = parameters.map(({ name }) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined) throw new MappingError(`There are two parameters named ${duplicate}.`);
  // Values are stored by name, and a JavaScript object cannot store one under this name.
  if (names.includes("__proto__")) throw new MappingError("A parameter cannot be named __proto__.");
  return parameters.sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1));
};

const toParameter = ({ values, address }: Instance): MappedParameter => {
  const [rule] = toBlocks(values.validation);
  return {
    name: toText(values.name),
    display_name: toText(values.display_name),
    description: toText(values.description),
    type: toText(values.type) || "string",
    form_type: toText(values.form_type),
    styling: parseStyling(toText(values.styling)),
    mutable: toFlag(values.mutable),
    default_value: toText(values.default),
    required: !toFlag(values.optional),
    ephemeral: toFlag(values.ephemeral),
    icon: toText(values.icon),
    order: toNumber(values.order),
    options: toBlocks(values.option).map((block) => ({
      name: toText(block.name),
      value: toText(block.value),
      description: toText(block.description),
      icon: toText(block.icon),
    })),
    validation: {
      regex: toText(rule?.regex),
      min: readLimit(rule, "min"),
      max: readLimit(rule, "max"),
      monotonic: toText(rule?.monotonic),
      error: toText(rule?.error),
    },
    is_integer: rule !== undefined && toText(values.type) === "number",
    value: toText(values.value),
    address,
  };
};

const readLimit = (rule: Values | undefined, key: "min" | "max"): number | null =>
  rule === undefined || rule[`${key}_disabled`] !== false || typeof rule[key] !== "number"
    ? null
    : (rule[key] as number);

const parseStyling = (json: string): Record<string, unknown> => {
  const value = tryParseJson(json);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
};

export const toPresets = (instances: readonly Instance[]): MappedPreset[] => {
  const presets = selectDataSources(instances, "coder_workspace_preset").map(({ values }) => {
    const [prebuilds] = toBlocks(values.prebuilds);
    const [expiry] = toBlocks(prebuilds?.expiration_policy);
    const [scheduling] = toBlocks(prebuilds?.scheduling);
    return {
      name: toText(values.name),
      description: toText(values.description),
      icon: toText(values.icon),
      default: toFlag(values.default),
      parameters: toTexts(values.parameters),
      prebuilds: {
        instances: toNumber(prebuilds?.instances),
        ttl_seconds: toNumber(expiry?.ttl),
        timezone: toText(scheduling?.timezone),
        schedule: toBlocks(scheduling?.schedule).map((block) => ({
          cron: toText(block.cron),
          instances: toNumber(block.instances),
        })),
      },
    };
  });
  if (presets.filter((preset) => preset.default).length > 1)
    throw new MappingError("Only one preset can be the default.");
  const names = presets.map(({ name }) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined) throw new MappingError(`There are two presets named ${duplicate}.`);
  return presets;
};

/** Returns the external accounts that users of the template connect. Old templates declare them with coder_git_auth. */
export const toAccounts = (instances: readonly Instance[]): { id: string; optional: boolean }[] => {
  const accounts = ["coder_external_auth", "coder_git_auth"].flatMap((type) => selectDataSources(instances, type));
  const byId = new Map<string, boolean>();
  for (const { values } of accounts) {
    const id = toText(values.id);
    byId.set(id, (byId.get(id) ?? true) && toFlag(values.optional));
  }
  return [...byId].map(([id, optional]) => ({ id, optional }));
};

/** Returns the tags with which the template selects workers for its builds. */
export const toTags = (instances: readonly Instance[]): Record<string, string> =>
  Object.assign({}, ...selectDataSources(instances, "coder_workspace_tags").map(({ values }) => toTexts(values.tags)));
