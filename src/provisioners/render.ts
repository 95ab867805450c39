// Fills in the {{ }} placeholders of a template for one build. In a shell script or command, a placeholder becomes a reference to an
// environment variable, so that the shell cannot execute the value as code. But if the whole script is a single placeholder, the value
// itself is the script (rule TP-20).
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
 * Returns the manifest with all texts of its resources filled in. Each agent's `env` gets a variable for every parameter, and for the
 * variables and built-in names that its scripts use. Values that the template sets in `env` take precedence. Throws ProvisionError if the
 * inserted values are too long. A build that stops or deletes a workspace (`isStart` is false) omits further values instead.
 */
export const renderManifest = (manifest: Manifest, values: RenderValues, isStart = true): Manifest => {
  const countInserted = limitInserted(isStart);
  const withLinks = { ...values, parameters: addLinks(manifest, values.parameters) };
  const lookup: Lookup = {
    parameterNames: Object.keys(values.parameters),
    getTextValue: (name) => countInserted(findValue(name, values)),
    getEnvValue: (name) => countInserted(findValue(name, withLinks)),
  };
  const resources = manifest.resources.map((resource) => addRepositories(renderResource(resource, lookup)));
  return { ...manifest, resources };
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

/** Replaces the plan of a repository by its URL, which is useful for the workspace's programs. */
const addLinks = ({ parameters = [] }: Manifest, values: RenderValues["parameters"]): RenderValues["parameters"] => {
  const forms = new Map(parameters.map(({ name, form_type }) => [name, form_type]));
  const entries = Object.entries(values).map(([name, value]) =>
    forms.get(name) === REPOSITORY_FORM ? [name, parsePlan(value)?.url ?? value] : [name, value],
  );
  return Object.fromEntries(entries);
};

type GetValue = (name: string) => string;

/** The stable ports are below the ephemeral port range of operating systems. */
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
  // A parameter without a value is empty. The import rejects unknown names.
  return group && Object.hasOwn(group, key) ? String(group[key]) : "";
};

type Lookup = {
  readonly parameterNames: readonly string[];
  /** Returns the value to insert into a text. */
  readonly getTextValue: GetValue;
  /** Returns the value of an environment variable. */
  readonly getEnvValue: GetValue;
};

const renderResource = (resource: ManifestResource, lookup: Lookup): ManifestResource => ({
  ...fillDeep({ ...resource, agents: undefined }, lookup.getTextValue),
  ...(resource.agents ? { agents: resource.agents.map((agent) => renderAgent(agent, lookup)) } : {}),
});

const renderAgent = (agent: ManifestAgent, { parameterNames, getTextValue, getEnvValue }: Lookup): ManifestAgent => {
  const toReference = (name: string): string =>
    agent.os === "windows" ? `\${env:${toEnvironmentName(name)}}` : `\${${toEnvironmentName(name)}}`;
  const fillScript = (text: string): string => {
    const singleName = parseSinglePlaceholder(text);
    return singleName === undefined ? fillIn(text, toReference) : getTextValue(singleName);
  };
  const usedNames = [
    ...(agent.scripts ?? []).map(({ script }) => script),
    ...(agent.metadata ?? []).map(({ script }) => script),
    ...(agent.apps ?? []).map(({ command }) => command ?? ""),
  ].flatMap(listPlaceholders);
  const names = new Set([...parameterNames.map((name) => `parameters.${name}`), ...usedNames]);
  const env = Object.fromEntries([...names].map((name) => [toEnvironmentName(name), getEnvValue(name)]));
  const { scripts, metadata, apps, ...otherFields } = agent;
  const filled = fillDeep(otherFields, getTextValue);
  return {
    ...filled,
    env: { ...env, ...filled.env },
    ...(scripts && {
      scripts: scripts.map(({ script, ...others }) => ({
        ...fillDeep(others, getTextValue),
        script: fillScript(script),
      })),
    }),
    ...(metadata && {
      metadata: metadata.map(({ script, ...others }) => ({
        ...fillDeep(others, getTextValue),
        script: fillScript(script),
      })),
    }),
    ...(apps && {
      apps: apps.map(({ command, ...others }) => ({
        ...fillDeep(others, getTextValue),
        ...(command === undefined ? {} : { command: fillScript(command) }),
      })),
    }),
  };
};

/** Fills in every string inside of a value, except keys. Drops undefined members. */
const fillDeep = <T>(value: T, fill: GetValue): T => {
  if (typeof value === "string") return fillIn(value, fill) as T;
  if (Array.isArray(value)) return value.map((one) => fillDeep(one, fill)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, fillDeep(inner as unknown, fill)])) as T;
};
