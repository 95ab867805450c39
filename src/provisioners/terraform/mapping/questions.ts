// Maps a template's form: parameters, presets, accounts, tags (facts/terraform 3.16 to 3.20, 3.23). Pure.
import { tryParseJson } from "#base/json/read.ts";
import { blocks, flag, type Instance, number, text, texts, type Values } from "./document.ts";
import { type MappedParameter, type MappedPreset, MappingError } from "./mapped.ts";

const selectData = (instances: readonly Instance[], type: string): Instance[] =>
  instances.filter((one) => one.mode === "data" && one.type === type);

/** Returns parameters in display order. Throws MappingError for a duplicate name. */
export const toParameters = (instances: readonly Instance[]): MappedParameter[] => {
  const parameters = selectData(instances, "coder_parameter").map(toParameter);
  const names = parameters.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new MappingError(`There are two parameters named ${twice}.`);
  // Values are stored by name, and a JavaScript object cannot store one under this name.
  if (names.includes("__proto__")) throw new MappingError("A parameter cannot be named __proto__.");
  return parameters.sort((a, b) => a.order - b.order || (a.name < b.name ? -1 : 1));
};

const toParameter = ({ values, address }: Instance): MappedParameter => {
  const [rule] = blocks(values.validation);
  return {
    name: text(values.name),
    display_name: text(values.display_name),
    description: text(values.description),
    type: text(values.type) || "string",
    form_type: text(values.form_type),
    styling: parseStyling(text(values.styling)),
    mutable: flag(values.mutable),
    default_value: text(values.default),
    required: !flag(values.optional),
    ephemeral: flag(values.ephemeral),
    icon: text(values.icon),
    order: number(values.order),
    options: blocks(values.option).map((one) => ({
      name: text(one.name),
      value: text(one.value),
      description: text(one.description),
      icon: text(one.icon),
    })),
    validation: {
      regex: text(rule?.regex),
      min: readLimit(rule, "min"),
      max: readLimit(rule, "max"),
      monotonic: text(rule?.monotonic),
      error: text(rule?.error),
    },
    is_whole: rule !== undefined && text(values.type) === "number",
    value: text(values.value),
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
  const presets = selectData(instances, "coder_workspace_preset").map(({ values }) => {
    const [prebuilds] = blocks(values.prebuilds);
    const [expiry] = blocks(prebuilds?.expiration_policy);
    const [scheduling] = blocks(prebuilds?.scheduling);
    return {
      name: text(values.name),
      description: text(values.description),
      icon: text(values.icon),
      default: flag(values.default),
      parameters: texts(values.parameters),
      prebuilds: {
        instances: number(prebuilds?.instances),
        ttl_seconds: number(expiry?.ttl),
        timezone: text(scheduling?.timezone),
        schedule: blocks(scheduling?.schedule).map((one) => ({
          cron: text(one.cron),
          instances: number(one.instances),
        })),
      },
    };
  });
  if (presets.filter((one) => one.default).length > 1) throw new MappingError("Only one preset can be the default.");
  const names = presets.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw new MappingError(`There are two presets named ${twice}.`);
  return presets;
};

/** Returns the accounts that users of the template link; old templates call them coder_git_auth. */
export const toAccounts = (instances: readonly Instance[]): { id: string; optional: boolean }[] => {
  const found = ["coder_external_auth", "coder_git_auth"].flatMap((type) => selectData(instances, type));
  const byId = new Map<string, boolean>();
  for (const { values } of found) {
    const id = text(values.id);
    byId.set(id, (byId.get(id) ?? true) && flag(values.optional));
  }
  return [...byId].map(([id, optional]) => ({ id, optional }));
};

/** Returns the worker tags that the template sets for these values. */
export const toTags = (instances: readonly Instance[]): Record<string, string> =>
  Object.assign({}, ...selectData(instances, "coder_workspace_tags").map(({ values }) => texts(values.tags)));
