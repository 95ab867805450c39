// Finds and replaces the {{ }} placeholders in a template's texts: parameters.x, variables.x, workspace.name, workspace.id, workspace.port,
// owner.username and owner.email. Any other name is an error. \{{ is a literal {{. Used by the manifest checks and by render.ts.
import type { Manifest } from "#schema/templates/manifest.ts";

const BUILT_IN_NAMES = ["workspace.name", "workspace.id", "workspace.port", "owner.username", "owner.email"] as const;

const PLACEHOLDER = /\\\{\{|\{\{([^{}]*)\}\}/g;

/** Replaces each placeholder by its value, and `\{{` by `{{`. */
export const fillIn = (text: string, lookUp: (name: string) => string): string =>
  text.includes("{{")
    ? text.replace(PLACEHOLDER, (match, name?: string) => (name === undefined ? match.slice(1) : lookUp(name.trim())))
    : text;

/** Returns the names of the placeholders in a text, in order. */
export const listPlaceholders = (text: string): string[] => {
  const names: string[] = [];
  fillIn(text, (name) => {
    names.push(name);
    return "";
  });
  return names;
};

/** Returns the name if the whole text is one placeholder. */
export const parseSinglePlaceholder = (text: string): string | undefined =>
  /^\s*\{\{([^{}]*)\}\}\s*$/.exec(text)?.[1]?.trim();

/** Returns all names that placeholders in this manifest's texts may use. */
export const listKnownNames = (manifest: Manifest): Set<string> =>
  new Set([
    ...BUILT_IN_NAMES,
    ...(manifest.parameters ?? []).map(({ name }) => `parameters.${name}`),
    ...(manifest.variables ?? []).map(({ name }) => `variables.${name}`),
  ]);

/** Returns the environment variable that passes a value to scripts: `parameters.my-name` is SLIPWAY_PARAM_MY_NAME. */
export const toEnvironmentName = (name: string): string => {
  const [kind = "", ...nameParts] = name.split(".");
  const suffix = nameParts
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, "_");
  if (kind === "parameters") return `SLIPWAY_PARAM_${suffix}`;
  if (kind === "variables") return `SLIPWAY_VAR_${suffix}`;
  return `SLIPWAY_${kind.toUpperCase()}_${suffix}`;
};
