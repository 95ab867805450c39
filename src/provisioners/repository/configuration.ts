// The part of a plan that a repository's configuration file determines, and helpers for the modules that read such files. The helpers
// accept values of any type, keep only values that a plan can contain, and record all others with a reason.
import { dirname, normalize } from "node:path/posix";
import type { Lifecycle, LifecycleCommand, RepositoryPlan, RepositoryPort } from "#schema/templates/repository.ts";

export type Configuration = Omit<
  RepositoryPlan,
  | "url"
  | "name"
  | "ref"
  | "ref_kind"
  | "commit"
  | "path"
  | "full_history"
  | "source"
  | "configuration"
  | "choices"
  | "hints"
  | "build"
  | "features"
> & {
  build?: Omit<NonNullable<RepositoryPlan["build"]>, "tree" | "dockerfile_id">;
  features: Omit<RepositoryPlan["features"][number], "tree">[];
};

/** The variable with the clone's folder in scripts. Other texts of a plan contain it as a placeholder for that folder. */
export const FOLDER_VARIABLE = "containerWorkspaceFolder";

export const createConfiguration = (): Configuration => ({
  container_env: {},
  remote_env: {},
  features: [],
  lifecycle: { on_create: [], update_content: [], post_create: [], post_start: [] },
  wait_for: "update_content",
  ports: [],
  volumes: [],
  wanted: {},
  secrets: [],
  extensions: [],
  dropped: [],
});

export type Values = Readonly<Record<string, unknown>>;

export const isMapping = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const toText = (value: unknown, maxChars = 1_024): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= maxChars && !value.includes("\0") ? value : undefined;

export const toList = (value: unknown): readonly unknown[] => (value === undefined ? [] : [value].flat());

const MAX_NOTES = 64;

/** Records a property that is ignored. */
export const recordDropped = ({ dropped }: Pick<Configuration, "dropped">, property: string, reason: string): void => {
  if (dropped.length < MAX_NOTES) dropped.push({ property: property.slice(0, 256), reason: reason.slice(0, 1_024) });
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_VARIABLES = 256;
const MAX_VALUE_CHARS = 8_192;

/** Returns the environment variables in a mapping. Records invalid variables, and variables that the server sets. */
export const toVariables = (config: Configuration, property: string, value: unknown): Record<string, string> => {
  const variables: Record<string, string> = {};
  if (!isMapping(value)) return variables;
  for (const [name, variableValue] of Object.entries(value).slice(0, MAX_VARIABLES)) {
    if (variableValue === null || variableValue === undefined) continue;
    const text = typeof variableValue === "object" ? undefined : String(variableValue);
    if (text === undefined || text.length > MAX_VALUE_CHARS || text.includes("\0") || !VARIABLE.test(name)) {
      recordDropped(config, `${property}.${name}`, "This is not an environment variable.");
    } else if (/^(?:SLIPWAY|CODER)_/.test(name))
      recordDropped(config, `${property}.${name}`, "Slipway sets this variable.");
    else variables[name] = text;
  }
  return variables;
};

const MAX_SCRIPT_CHARS = 16_384;

const toCommand = (value: unknown, name?: string): LifecycleCommand | undefined => {
  const named = name === undefined ? {} : { name: name.slice(0, 256) };
  const line = toText(value, MAX_SCRIPT_CHARS);
  if (line !== undefined) return { ...named, run: line };
  if (!Array.isArray(value) || value.length === 0 || value.length > 256) return undefined;
  const words = value.map((word) => (typeof word === "string" && word.length <= MAX_SCRIPT_CHARS ? word : undefined));
  return words.includes(undefined) || words.some((word) => word?.includes("\0"))
    ? undefined
    : { ...named, run: words as string[] };
};

/** Converts a shell command line, a list of a program and its arguments, or a mapping of several such commands that run in parallel. */
export const toLifecycle = (config: Configuration, property: string, value: unknown): Lifecycle => {
  if (value === undefined || value === null || value === "") return [];
  const group = isMapping(value)
    ? Object.entries(value)
        .slice(0, MAX_NOTES)
        .map(([name, one]) => toCommand(one, name))
    : [toCommand(value)];
  if (group.includes(undefined))
    recordDropped(
      config,
      property,
      "This is not a command: expected a string, a list of strings, or a mapping of these.",
    );
  const usable = group.filter((one) => one !== undefined);
  return usable.length > 0 ? [usable] : [];
};

const MAX_PORTS = 32;

/** Adds a port, unless it is already listed or there are too many. */
export const addPort = ({ ports }: Configuration, { port, label, protocol }: RepositoryPort): void => {
  if (ports.length >= MAX_PORTS || ports.some((one) => one.port === port)) return;
  ports.push({ port, label: label.slice(0, 128), protocol });
};

export const isPort = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535;

/** Resolves a path in the file `from` to a path in the repository. Returns undefined if it leads out of the repository. */
export const resolvePath = (from: string, path: string): string | undefined => {
  const joined = normalize(path.startsWith("/") ? path : `${dirname(from)}/${path}`);
  if (joined.startsWith("/") || joined === ".." || joined.startsWith("../")) return undefined;
  return joined === "." ? "" : joined.replace(/^\.\//, "").replace(/\/$/, "");
};

const IMAGE =
  /^[a-zA-Z0-9]+([._-]+[a-zA-Z0-9]+)*(:\d+)?(\/[a-zA-Z0-9]+([._-]+[a-zA-Z0-9]+)*)*(:[\w][\w.-]*)?(@[a-z0-9]+:[a-f0-9]+)?$/;

/** Sets the image if the value is a valid image name. */
export const applyImage = (config: Configuration, property: string, value: unknown): void => {
  const image = toText(value, 512);
  if (image !== undefined && IMAGE.test(image)) config.image = image;
  else recordDropped(config, property, "This is not the name of an image.");
};
