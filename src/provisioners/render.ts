// Fills in the {{ }} placeholders of a template for one build. In text that a shell reads (scripts, commands, metadata scripts), a
// placeholder becomes a reference to an environment variable, never the value itself, so that the shell cannot execute the value as code. A
// text that consists of a single placeholder is replaced by the value, because the value is then the script (rule TP-20).
import type { Manifest, ManifestAgent, ManifestResource } from "#schema/templates/manifest.ts";
import { parsePlan, REPOSITORY_FORM } from "#schema/templates/repository.ts";
import { fillIn, listPlaceholders, parseSinglePlaceholder, toEnvironmentName } from "./placeholders.ts";
import { ProvisionError } from "./provisioner.ts";
import { addRepositories } from "./repository/apply-plan.ts";

export type RenderValues = {
  /** All parameters of the build (see resolveParameters). */
  readonly parameters: Readonly<Record<string, string>>;
  /** All variables of the version (see resolveVariables). */
  readonly variables: Readonly<Record<string, string>>;
  readonly workspace: { readonly id: string; readonly name: string };
  readonly owner: { readonly username: string; readonly email: string };
};

/** Maximum characters of the values that are inserted into one template, and of the resources of one build as JSON. */
export const MAX_RESOURCES_CHARS = 512 * 1024;

/**
 * Returns the manifest with all texts of its resources filled in. Each agent's env gets SLIPWAY_PARAM_<NAME> for every parameter, and for
 * the variables and built-in names that its scripts use. Values that the template sets in `env` take precedence. Throws ProvisionError if
 * the inserted values are too long; a build that stops or deletes a workspace (`isStart` is false) leaves out further values instead.
 */
export const renderManifest = (manifest: Manifest, values: RenderValues, isStart = true): Manifest => {
  const countInserted = limitInserted(isStart);
  const withLinks = { ...values, parameters: addLinks(manifest, values.parameters) };
  const texts: Texts = {
    values: withLinks,
    fill: (name) => countInserted(findValue(name, values)),
    show: (name) => countInserted(findValue(name, withLinks)),
  };
  return { ...manifest, resources: manifest.resources.map((one) => addRepositories(renderResource(one, texts))) };
};

/** Returns a function that counts a value before it is inserted. A template can repeat a value thousands of times. */
const limitInserted = (isStart: boolean): ((value: string) => string) => {
  let remainingChars = MAX_RESOURCES_CHARS;
  return (value) => {
    if (value.length <= remainingChars) {
      remainingChars -= value.length;
      return value;
    }
    if (!isStart) return "";
    throw new ProvisionError(
      `The template inserts values of more than ${MAX_RESOURCES_CHARS} characters in total. Use shorter values, or ask the template's author to insert them in fewer places.`,
    );
  };
};

/** Replaces the plans of repositories by their links, which the workspace's programs get instead. */
const addLinks = ({ parameters = [] }: Manifest, values: RenderValues["parameters"]): RenderValues["parameters"] => {
  const forms = new Map(parameters.map(({ name, form_type }) => [name, form_type]));
  const entries = Object.entries(values).map(([name, value]) =>
    forms.get(name) === REPOSITORY_FORM ? [name, parsePlan(value)?.url ?? value] : [name, value],
  );
  return Object.fromEntries(entries);
};

type GetValue = (name: string) => string;

// The ports are below the ephemeral port range of operating systems.
const MIN_PORT = 20_000;
const PORT_COUNT = 10_000;

/** Returns a stable port for a workspace's own server, so that several workspaces can listen on one machine. */
const toStablePort = (workspace_id: string): string =>
  String(MIN_PORT + (Number.parseInt(workspace_id.replaceAll("-", "").slice(-8), 16) % PORT_COUNT));

const findValue = (name: string, values: RenderValues): string => {
  if (name === "workspace.port") return toStablePort(values.workspace.id);
  const dot = name.indexOf(".");
  const kind = name.slice(0, dot);
  const key = name.slice(dot + 1);
  const group: Record<string, string> | undefined =
    kind === "parameters" || kind === "variables" || kind === "workspace" || kind === "owner"
      ? values[kind]
      : undefined;
  // A parameter without a value is empty. There are no unknown names, because the import rejects them.
  return group && Object.hasOwn(group, key) ? String(group[key]) : "";
};

/** `fill` fills in texts, `show` returns the values for the environment. */
type Texts = { readonly values: RenderValues; readonly fill: GetValue; readonly show: GetValue };

const renderResource = (resource: ManifestResource, texts: Texts): ManifestResource => ({
  ...fillDeep({ ...resource, agents: undefined }, texts.fill),
  ...(resource.agents ? { agents: resource.agents.map((agent) => renderAgent(agent, texts)) } : {}),
});

const renderAgent = (agent: ManifestAgent, { values, fill, show }: Texts): ManifestAgent => {
  const reference = toReference(agent.os ?? "linux");
  const fillForShell = (text: string): string => {
    const singleName = parseSinglePlaceholder(text);
    return singleName === undefined ? fillIn(text, (name) => reference(toEnvironmentName(name))) : fill(singleName);
  };
  const usedNames = [
    ...(agent.scripts ?? []).map(({ script }) => script),
    ...(agent.metadata ?? []).map(({ script }) => script),
    ...(agent.apps ?? []).map(({ command }) => command ?? ""),
  ].flatMap(listPlaceholders);
  const names = new Set([...Object.keys(values.parameters).map((name) => `parameters.${name}`), ...usedNames]);
  const env = Object.fromEntries([...names].map((name) => [toEnvironmentName(name), show(name)]));
  const { scripts, metadata, apps, ...otherFields } = agent;
  const filled = fillDeep(otherFields, fill);
  return {
    ...filled,
    env: { ...env, ...filled.env },
    ...(scripts && {
      scripts: scripts.map(({ script, ...one }) => ({ ...fillDeep(one, fill), script: fillForShell(script) })),
    }),
    ...(metadata && {
      metadata: metadata.map(({ script, ...one }) => ({ ...fillDeep(one, fill), script: fillForShell(script) })),
    }),
    ...(apps && {
      apps: apps.map(({ command, ...one }) => ({
        ...fillDeep(one, fill),
        ...(command === undefined ? {} : { command: fillForShell(command) }),
      })),
    }),
  };
};

const toReference =
  (os: string) =>
  (variable: string): string =>
    os === "windows" ? `\${env:${variable}}` : `\${${variable}}`;

/** Fills in every text of a plain value; keys are unchanged. Undefined members are dropped. */
const fillDeep = <T>(value: T, fill: GetValue): T => {
  if (typeof value === "string") return fillIn(value, fill) as T;
  if (Array.isArray(value)) return value.map((one) => fillDeep(one, fill)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, fillDeep(inner as unknown, fill)])) as T;
};
