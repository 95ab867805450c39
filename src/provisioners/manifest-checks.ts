// Checks the rules of a manifest that its schema cannot express: names must differ, placeholders must exist, defaults and presets must pass
// validation, patterns and cron expressions must be valid, and some keys belong to one provisioner (rules TP-10 to TP-12).
import { findScriptCronProblem, isZone } from "#base/schedule/cron.ts";
import type {
  Manifest,
  ManifestAgent,
  ManifestCondition,
  ManifestParameter,
  ManifestPreset,
} from "#schema/templates/manifest.ts";
import { REPOSITORY_FORM } from "#schema/templates/repository.ts";
import { isUnsafeLink } from "#schema/text.ts";
import { resolveProvisioner } from "./effective.ts";
import type { Finding } from "./finding.ts";
import { checkProvisioner } from "./manifest-provisioner.ts";
import { checkValue, formatDefault, getType } from "./parameters.ts";
import { compilePattern, withSharedEffort } from "./pattern.ts";
import { listKnownNames, listPlaceholders, parseSinglePlaceholder, toEnvironmentName } from "./placeholders.ts";

const FORM_TYPES: Record<string, readonly string[]> = {
  string: ["input", "textarea", "dropdown", "radio", REPOSITORY_FORM],
  number: ["input", "slider", "dropdown", "radio"],
  bool: ["checkbox", "switch", "radio", "dropdown"],
  "list(string)": ["tag-select", "multi-select", "radio"],
};

/** Returns all problems of a manifest that matches the schema; empty if the manifest is valid. */
export const checkManifest = (manifest: Manifest): Finding[] => withSharedEffort(() => findAll(manifest));

const findAll = (manifest: Manifest): Finding[] => [
  ...checkParameters(manifest),
  ...checkConditions(manifest),
  ...checkVariables(manifest),
  ...checkPresets(manifest),
  ...checkResources(manifest),
  ...checkPlaceholders(manifest),
  ...checkProvisioner(manifest),
];

/** Returns a finding for each entry that has the same key as an earlier one. */
const findRepeated = (entries: readonly { pointer: string; key: string; shown: string }[], kind: string): Finding[] => {
  const seen = new Set<string>();
  return entries.flatMap(({ pointer, key, shown }) => {
    if (seen.has(key)) return [{ pointer, reason: `there is another ${kind} named ${shown}` }];
    seen.add(key);
    return [];
  });
};

const listNames = (list: readonly { name: string }[], at: string, toKey = (name: string) => name) =>
  list.map(({ name }, i) => ({ pointer: `${at}/${i}/name`, key: toKey(name), shown: name }));

const checkParameters = ({ parameters = [] }: Manifest): Finding[] => [
  // Two names that differ only in case or hyphens would share one environment variable.
  ...findRepeated(
    listNames(parameters, "/parameters", (name) => toEnvironmentName(`parameters.${name}`)),
    "parameter",
  ),
  ...parameters.flatMap((parameter, i) => checkParameter(parameter, `/parameters/${i}`)),
];

const checkParameter = (parameter: ManifestParameter, at: string): Finding[] => {
  const findings: Finding[] = [];
  const { validation, options, form_type } = parameter;
  const type = getType(parameter);
  const addFinding = (key: string, reason: string): void => void findings.push({ pointer: `${at}${key}`, reason });
  if (form_type !== undefined && !FORM_TYPES[type]?.includes(form_type)) {
    addFinding("/form_type", `a parameter of type ${type} takes ${FORM_TYPES[type]?.join(", ")}`);
  }
  if (validation?.regex !== undefined) {
    const reason = findPatternMistake(validation.regex);
    if (type !== "string") addFinding("/validation/regex", "is only for parameters of type string");
    else if (reason) addFinding("/validation/regex", reason);
  }
  for (const key of ["min", "max", "monotonic"] as const) {
    if (validation?.[key] !== undefined && type !== "number") {
      addFinding(`/validation/${key}`, "is only for parameters of type number");
    }
  }
  if (validation?.min !== undefined && validation.max !== undefined && validation.min > validation.max) {
    addFinding("/validation/min", "is larger than max");
  }
  if (options?.length === 0) addFinding("/options", "must have at least one entry");
  if (parameter.ephemeral && !parameter.mutable) addFinding("/ephemeral", "an ephemeral parameter must be mutable");
  if (parameter.ephemeral && parameter.default === undefined)
    addFinding("/ephemeral", "an ephemeral parameter needs a default");
  const values = new Map((options ?? []).map(({ value }, i) => [value, i]));
  if (options && values.size < options.length) addFinding("/options", "two options have the same value");
  if (findings.length > 0) return findings;
  for (const [i, option] of (options ?? []).entries()) {
    const reason = checkValue({ ...parameter, options: undefined }, option.value);
    if (reason && type !== "list(string)") addFinding(`/options/${i}/value`, reason);
  }
  const defaultValue = formatDefault(parameter);
  const reason = defaultValue === undefined ? undefined : checkValue(parameter, defaultValue);
  if (reason) addFinding("/default", reason);
  return findings;
};

const findPatternMistake = (source: string): string | undefined => {
  try {
    compilePattern(source);
    return undefined;
  } catch (error) {
    return `the pattern ${(error as Error).message}`;
  }
};

const checkVariables = ({ variables = [] }: Manifest): Finding[] => [
  ...findRepeated(
    listNames(variables, "/variables", (name) => toEnvironmentName(`variables.${name}`)),
    "variable",
  ),
  ...variables.flatMap((variable, i) => {
    const defaultValue = formatDefault(variable);
    const reason =
      defaultValue === undefined ? undefined : checkValue({ name: variable.name, type: variable.type }, defaultValue);
    return reason ? [{ pointer: `/variables/${i}/default`, reason }] : [];
  }),
];

const checkPresets = ({ presets = [], parameters = [] }: Manifest): Finding[] => {
  const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  const defaults = presets.flatMap((preset, i) => (preset.default ? [i] : []));
  return [
    ...findRepeated(listNames(presets, "/presets"), "preset"),
    ...defaults
      .slice(1)
      .map((i) => ({ pointer: `/presets/${i}/default`, reason: "only one preset can be the default" })),
    ...presets.flatMap((preset, i) => checkSchedule(preset, `/presets/${i}/prebuilds/schedule`)),
    ...presets.flatMap((preset, i) =>
      Object.entries(preset.parameters).flatMap(([name, value]) => {
        const parameter = byName.get(name);
        const reason = parameter ? checkValue(parameter, String(value)) : "there is no parameter of this name";
        return reason ? [{ pointer: `/presets/${i}/parameters/${name}`, reason }] : [];
      }),
    ),
  ];
};

const checkSchedule = ({ prebuilds }: ManifestPreset, at: string): Finding[] => {
  const schedule = typeof prebuilds === "object" ? prebuilds.schedule : undefined;
  if (!schedule) return [];
  return [
    ...(isZone(schedule.timezone) ? [] : [{ pointer: `${at}/timezone`, reason: "is not a known time zone" }]),
    ...schedule.entries.flatMap(({ cron }, i) =>
      cron.trim().split(/\s+/).length === 5 && cron.startsWith("* ") && findScriptCronProblem(cron) === undefined
        ? []
        : [{ pointer: `${at}/entries/${i}/cron`, reason: "must be hours and days such as * 8-17 * * 1-5" }],
    ),
  ];
};

const checkResources = (manifest: Manifest): Finding[] => {
  const { resources } = manifest;
  const agents = resources.flatMap((resource, r) =>
    (resource.agents ?? []).map((agent, a) => ({ agent, at: `/resources/${r}/agents/${a}` })),
  );
  return [
    ...findRepeated(listNames(resources, "/resources"), "resource"),
    ...resources.flatMap((resource, r) =>
      findRepeated(
        (resource.metadata ?? []).map(({ key }, i) => ({
          pointer: `/resources/${r}/metadata/${i}/key`,
          key,
          shown: key,
        })),
        "metadata entry",
      ),
    ),
    ...findRepeated(
      agents.map(({ agent, at }) => ({ pointer: `${at}/name`, key: agent.name.toLowerCase(), shown: agent.name })),
      "agent",
    ),
    ...agents.flatMap(({ agent, at }) => checkAgent(manifest, agent, at)),
  ];
};

/** Only the value of a parameter may name a repository, because the server parses and sanitizes it. */
const checkRepository = ({ parameters = [] }: Manifest, { repository }: ManifestAgent, at: string): Finding[] => {
  if (repository === undefined) return [];
  const name = parseSinglePlaceholder(repository)?.replace(/^parameters\./, "");
  const isRepositoryParameter = parameters.some(
    (parameter) => parameter.name === name && parameter.form_type === REPOSITORY_FORM,
  );
  const reason = `must be a placeholder of a parameter with the form_type ${REPOSITORY_FORM}`;
  return isRepositoryParameter ? [] : [{ pointer: `${at}/repository`, reason }];
};

const checkAgent = (manifest: Manifest, agent: ManifestAgent, at: string): Finding[] => [
  ...checkRepository(manifest, agent, at),
  ...(agent.token !== undefined && resolveProvisioner(manifest) !== "echo"
    ? [{ pointer: `${at}/token`, reason: "is only for the provisioner echo" }]
    : []),
  ...Object.keys(agent.env ?? {})
    .filter((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    .map((name) => ({ pointer: `${at}/env/${name}`, reason: "is not a name of an environment variable" })),
  ...findRepeated(
    (agent.metadata ?? []).map(({ key }, i) => ({ pointer: `${at}/metadata/${i}/key`, key, shown: key })),
    "metadata entry",
  ),
  ...findRepeated(
    (agent.apps ?? []).map(({ slug }, i) => ({ pointer: `${at}/apps/${i}/slug`, key: slug, shown: slug })),
    "app",
  ),
  ...findRepeated(
    (agent.devcontainers ?? []).map(({ name }, i) => ({
      pointer: `${at}/devcontainers/${i}/name`,
      key: name.toLowerCase(),
      shown: name,
    })),
    "devcontainer",
  ),
  ...(agent.apps ?? []).flatMap((app, i) => checkApp(app, `${at}/apps/${i}`)),
  ...(agent.scripts ?? []).flatMap((script, i) => {
    const reason = script.cron === undefined ? undefined : findScriptCronProblem(script.cron);
    return reason === undefined ? [] : [{ pointer: `${at}/scripts/${i}/cron`, reason }];
  }),
];

const checkApp = (app: NonNullable<ManifestAgent["apps"]>[number], at: string): Finding[] => {
  const findings: Finding[] = [];
  if (app.command !== undefined && app.url !== undefined) {
    findings.push({ pointer: `${at}/command`, reason: "an app has a command or a url, not both" });
  }
  if (app.external && app.url === undefined) findings.push({ pointer: `${at}/external`, reason: "needs a url" });
  // A page would execute such a link as a script. A link with placeholders is checked again after values are filled in.
  if (app.url !== undefined && isUnsafeLink(app.url)) {
    findings.push({ pointer: `${at}/url`, reason: "must not be a script" });
  }
  return findings;
};

const checkPlaceholders = (manifest: Manifest): Finding[] => {
  const known = listKnownNames(manifest);
  const findings: Finding[] = [];
  const walk = (value: unknown, pointer: string): void => {
    if (typeof value === "string") {
      for (const name of listPlaceholders(value)) {
        if (!known.has(name)) {
          findings.push({ pointer, reason: `{{ ${name} }} is not known; write \\{{ for a plain {{` });
        }
      }
    } else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        walk(inner, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
      }
    }
  };
  walk(manifest.resources, "/resources");
  return findings;
};

/** Checks that conditions name only earlier parameters and their valid values, and that conditional defaults are valid (rule DY-4). */
const checkConditions = ({ parameters = [] }: Manifest): Finding[] =>
  parameters.flatMap((parameter, i) => {
    const earlierParameters = new Map(parameters.slice(0, i).map((earlier) => [earlier.name, earlier]));
    const at = `/parameters/${i}`;
    return [
      ...checkCondition(parameter.when, earlierParameters, `${at}/when`),
      ...(parameter.options ?? []).flatMap(({ when }, n) =>
        checkCondition(when, earlierParameters, `${at}/options/${n}/when`),
      ),
      ...(parameter.defaults ?? []).flatMap(({ when, value }, n) => {
        const reason = checkValue(parameter, String(value));
        return [
          ...checkCondition(when, earlierParameters, `${at}/defaults/${n}/when`),
          ...(reason ? [{ pointer: `${at}/defaults/${n}/value`, reason }] : []),
        ];
      }),
    ];
  });

const checkCondition = (
  condition: ManifestCondition | undefined,
  earlier: ReadonlyMap<string, ManifestParameter>,
  at: string,
): Finding[] =>
  Object.entries(condition ?? {}).flatMap(([name, wanted]) => {
    const parameter = earlier.get(name);
    const pointer = `${at}/${name}`;
    if (!parameter) return [{ pointer, reason: "is not an earlier parameter" }];
    const reasons = [wanted].flat().map((value) => checkValue(parameter, String(value)));
    return reasons.flatMap((reason) => (reason ? [{ pointer, reason: `can never be: ${reason}` }] : []));
  });
