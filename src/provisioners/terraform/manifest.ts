// Converts a mapped plan or state to a manifest, the format in which all other code represents a template (facts/terraform 6.3). Pure.
import { findScriptCronProblem } from "#base/schedule/cron.ts";
import type {
  ManifestAgent,
  ManifestApp,
  ManifestParameter,
  ManifestPreset,
  ManifestResource,
  ManifestVariable,
} from "#schema/templates/manifest.ts";
import type { ConfiguredVariable } from "./mapping/document.ts";
import {
  type MappedAgent,
  type MappedApp,
  type MappedParameter,
  type MappedPreset,
  type MappedResource,
  type MappedScript,
  MappingError,
} from "./mapping/mapped.ts";
import type { DeclaredVariable } from "./variables.ts";

type FullRecord = Record<string, unknown>;

/** Omits empty and false members, as a manifest does. */
const omitEmpty = <T>(full: FullRecord): T =>
  Object.fromEntries(Object.entries(full).filter(([, value]) => !isEmpty(value))) as T;

const isEmpty = (value: unknown): boolean =>
  value === "" || value === undefined || value === false || (Array.isArray(value) && value.length === 0);

export const toResources = (mapped: readonly MappedResource[]): ManifestResource[] =>
  mapped.map(({ name, type, module_path, hide, icon, daily_cost, metadata, agents, instance_type }) =>
    omitEmpty({
      name,
      type,
      module_path,
      hide,
      icon,
      daily_cost: daily_cost || undefined,
      metadata: [...(instance_type === "" ? [] : [{ key: "type", value: instance_type }]), ...metadata],
      agents: agents.map(toAgent),
    }),
  );

const toAgent = (agent: MappedAgent): ManifestAgent => {
  const { name, os, arch, directory, env, troubleshooting_url, motd_file, instance_id, token, api_key_scope } = agent;
  return {
    ...omitEmpty<Pick<ManifestAgent, "name">>({
      name,
      os,
      arch,
      directory,
      env,
      troubleshooting_url,
      motd_file,
      instance_id,
      token,
      api_key_scope: api_key_scope === "all" ? undefined : api_key_scope,
      apps: agent.apps.toSorted((a, b) => a.order - b.order || (a.slug < b.slug ? -1 : 1)).map(toApp),
      scripts: agent.scripts.map(toScript),
      metadata: agent.metadata
        .toSorted((a, b) => a.order - b.order)
        .map(({ key, display_name, script, interval, timeout }) =>
          omitEmpty({ key, display_name, script, interval, timeout: timeout || undefined }),
        ),
      devcontainers: agent.devcontainers.map((devcontainer) => omitEmpty(devcontainer)),
    }),
    // An empty list has its own meaning: no display apps.
    display_apps: agent.display_apps as NonNullable<ManifestAgent["display_apps"]>,
    connection_timeout: agent.connection_timeout,
  };
};

const toApp = (app: MappedApp): ManifestApp => {
  const { order: _order, healthcheck, share, open_in, ...otherFields } = app;
  return omitEmpty({ ...otherFields, share, open_in, healthcheck: healthcheck ?? undefined });
};

const toScript = (script: MappedScript): FullRecord =>
  omitEmpty({ ...script, timeout: script.timeout || undefined, cron: toCron(script) });

/**
 * Returns the cron expression with six fields. If the template's expression has five fields, the first one is the seconds, and the day of
 * the week is missing (facts/terraform 3.13).
 */
const toCron = ({ cron, display_name }: MappedScript): string => {
  if (cron === "") return "";
  const sixFields = cron.trim().split(/\s+/).length === 5 && !cron.startsWith("@") ? `${cron.trim()} *` : cron.trim();
  const problem = findScriptCronProblem(sixFields);
  if (problem !== undefined)
    throw new MappingError(`The script ${display_name} has the cron text "${cron}": it ${problem}.`);
  return sixFields;
};

/** Returns warnings about schedules of five fields, because authors may not expect that the first field is the seconds. */
export const listCronWarnings = (mapped: readonly MappedResource[]): string[] =>
  mapped
    .flatMap(({ agents }) => agents.flatMap(({ scripts }) => scripts))
    .filter(({ cron }) => cron.trim().split(/\s+/).length === 5)
    .map(
      ({ cron, display_name }) =>
        `The script ${display_name} has the cron text "${cron}" of five fields: the first is seconds.`,
    );

export const toParameter = (one: MappedParameter): ManifestParameter => {
  const { validation: rule, options, required, default_value, type } = one;
  const validation = omitEmpty<FullRecord>({
    regex: rule.regex,
    error: rule.error,
    monotonic: rule.monotonic,
    min: rule.min ?? undefined,
    max: rule.max ?? undefined,
  });
  return {
    ...omitEmpty<Pick<ManifestParameter, "name">>({
      name: one.name,
      display_name: one.display_name,
      description: one.description,
      icon: one.icon,
      type,
      form_type: one.form_type,
      mutable: one.mutable,
      ephemeral: one.ephemeral,
      address: one.address,
      options: options.map((option) => ({ ...omitEmpty<FullRecord>(option), name: option.name, value: option.value })),
      // An empty validation means that the number must be an integer.
      validation: Object.keys(validation).length > 0 || one.is_integer ? validation : undefined,
      styling: Object.keys(one.styling).length > 0 ? one.styling : undefined,
    }),
    ...(required ? {} : { default: default_value }),
  };
};

export const toPreset = ({
  name,
  description,
  icon,
  default: isDefault,
  parameters,
  prebuilds,
}: MappedPreset): ManifestPreset => {
  const { instances, ttl_seconds, timezone, schedule } = prebuilds;
  return {
    ...omitEmpty<Pick<ManifestPreset, "name" | "parameters">>({
      name,
      description,
      icon,
      default: isDefault,
      parameters,
    }),
    ...(instances === 0 && schedule.length === 0
      ? {}
      : {
          prebuilds: {
            instances,
            ...(ttl_seconds === 0 ? {} : { ttl_ms: ttl_seconds * 1000 }),
            ...(schedule.length === 0 ? {} : { schedule: { timezone: timezone || "UTC", entries: [...schedule] } }),
          },
        }),
  };
};

const TYPES = ["string", "number", "bool"] as const;

/** Converts a variable. `configured`: the variables in a plan's configuration; empty without a plan. */
export const toVariable = (
  { name, description, type, default: defaultText, sensitive }: DeclaredVariable,
  configured: Readonly<Record<string, ConfiguredVariable>> = {},
): ManifestVariable => {
  const plannedDefault = configured[name]?.default ?? undefined;
  const plannedText =
    plannedDefault === undefined || typeof plannedDefault === "string"
      ? plannedDefault
      : JSON.stringify(plannedDefault);
  return {
    ...omitEmpty<Pick<ManifestVariable, "name">>({
      name,
      sensitive,
      description: configured[name]?.description ?? description,
      type: TYPES.find((one) => one === type),
      declared_type: TYPES.some((one) => one === type) ? undefined : type,
    }),
    // An empty default also makes the value optional, so `omitEmpty` must not remove it.
    ...(defaultText === undefined ? {} : { default: plannedText ?? defaultText }),
  };
};
