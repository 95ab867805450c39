// Fills in the {{ }} of a template for one build. Text that a shell will read (scripts, commands, metadata scripts) never gets a value
// pasted in: the placeholder becomes a reference to an environment variable, which a shell expands without reading it as code. Only
// a text that is one placeholder and nothing else is replaced by the value, because then the value is the script (rule TP-20).
import type { Manifest, ManifestAgent, ManifestResource } from "#schema/templates/manifest.ts";
import { parsePlan, REPOSITORY_FORM } from "#schema/templates/repository.ts";
import { environmentName, fillIn, onlyPlaceholder, placeholdersIn } from "./placeholders.ts";
import { withRepositories } from "./repository/place.ts";

export type RenderValues = {
  /** All parameters of the build, complete (see resolveParameters). */
  readonly parameters: Readonly<Record<string, string>>;
  /** All variables of the version, complete (see resolveVariables). */
  readonly variables: Readonly<Record<string, string>>;
  readonly workspace: { readonly id: string; readonly name: string };
  readonly owner: { readonly username: string; readonly email: string };
};

/**
 * The manifest with all texts of its resources filled in. Each agent's env gets SLIPWAY_PARAM_<NAME> for every parameter, and for
 * variables and built-in names those its scripts use. What the template sets in `env` itself wins.
 */
export const renderManifest = (manifest: Manifest, values: RenderValues): Manifest => {
  const fill = (name: string): string => lookUp(name, values);
  const shown = { ...values, parameters: withLinks(manifest, values.parameters) };
  return {
    ...manifest,
    resources: manifest.resources.map((one) => withRepositories(renderResource(one, { values: shown, fill }))),
  };
};

/** Programs of the workspace get the link of a repository, not its plan. */
const withLinks = ({ parameters = [] }: Manifest, values: RenderValues["parameters"]): RenderValues["parameters"] => {
  const forms = new Map(parameters.map(({ name, form_type }) => [name, form_type]));
  const entries = Object.entries(values).map(([name, value]) =>
    forms.get(name) === REPOSITORY_FORM ? [name, parsePlan(value)?.url ?? value] : [name, value],
  );
  return Object.fromEntries(entries);
};

type ValueOf = (name: string) => string;

// Below the ports that systems give to outgoing connections.
const FIRST_PORT = 20_000;
const PORTS = 10_000;

/** A port for a workspace's own server, always the same one: several workspaces of one machine listen alongside each other. */
const portOf = (workspace_id: string): string =>
  String(FIRST_PORT + (Number.parseInt(workspace_id.replaceAll("-", "").slice(-8), 16) % PORTS));

const lookUp = (name: string, values: RenderValues): string => {
  if (name === "workspace.port") return portOf(values.workspace.id);
  const dot = name.indexOf(".");
  const kind = name.slice(0, dot);
  const key = name.slice(dot + 1);
  const group: Record<string, string> | undefined =
    kind === "parameters" || kind === "variables" || kind === "workspace" || kind === "owner"
      ? values[kind]
      : undefined;
  // The import has refused unknown names; a parameter without value is empty.
  return group && Object.hasOwn(group, key) ? String(group[key]) : "";
};

/** What fills texts in, and what the environment gets. */
type Texts = { readonly values: RenderValues; readonly fill: ValueOf };

const renderResource = (resource: ManifestResource, texts: Texts): ManifestResource => ({
  ...fillAll({ ...resource, agents: undefined }, texts.fill),
  ...(resource.agents ? { agents: resource.agents.map((agent) => renderAgent(agent, texts)) } : {}),
});

const renderAgent = (agent: ManifestAgent, { values, fill }: Texts): ManifestAgent => {
  const reference = referenceOn(agent.os ?? "linux");
  const shell = (text: string): string => {
    const only = onlyPlaceholder(text);
    return only === undefined ? fillIn(text, (name) => reference(environmentName(name))) : fill(only);
  };
  const used = [
    ...(agent.scripts ?? []).map(({ script }) => script),
    ...(agent.metadata ?? []).map(({ script }) => script),
    ...(agent.apps ?? []).map(({ command }) => command ?? ""),
  ].flatMap(placeholdersIn);
  const names = new Set([...Object.keys(values.parameters).map((name) => `parameters.${name}`), ...used]);
  const env = Object.fromEntries([...names].map((name) => [environmentName(name), lookUp(name, values)]));
  const { scripts, metadata, apps, ...rest } = agent;
  const filled = fillAll(rest, fill);
  return {
    ...filled,
    env: { ...env, ...filled.env },
    ...(scripts && {
      scripts: scripts.map(({ script, ...one }) => ({ ...fillAll(one, fill), script: shell(script) })),
    }),
    ...(metadata && {
      metadata: metadata.map(({ script, ...one }) => ({ ...fillAll(one, fill), script: shell(script) })),
    }),
    ...(apps && {
      apps: apps.map(({ command, ...one }) => ({
        ...fillAll(one, fill),
        ...(command === undefined ? {} : { command: shell(command) }),
      })),
    }),
  };
};

const referenceOn =
  (os: string) =>
  (variable: string): string =>
    os === "windows" ? `\${env:${variable}}` : `\${${variable}}`;

/** Every text in a plain value, filled in; keys stay. Members that are undefined are left out. */
const fillAll = <T>(value: T, fill: ValueOf): T => {
  if (typeof value === "string") return fillIn(value, fill) as T;
  if (Array.isArray(value)) return value.map((one) => fillAll(one, fill)) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, fillAll(inner as unknown, fill)])) as T;
};
