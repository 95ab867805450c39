// The {{ }} in a template's texts. Known are parameters.x, variables.x, workspace.name, workspace.id, workspace.port, owner.username and
// owner.email; anything else is a mistake, and \{{ stands for a plain {{. Used by the checks of a manifest and by render.ts.
import type { Manifest } from "#schema/templates/manifest.ts";

const BUILT_IN = ["workspace.name", "workspace.id", "workspace.port", "owner.username", "owner.email"] as const;

const PLACEHOLDER = /\\\{\{|\{\{([^{}]*)\}\}/g;

/** Replaces each placeholder; `\{{` becomes `{{`. */
export const fillIn = (text: string, lookUp: (name: string) => string): string =>
  text.includes("{{")
    ? text.replace(PLACEHOLDER, (all, name?: string) => (name === undefined ? all.slice(1) : lookUp(name.trim())))
    : text;

/** The names in a text, in order. */
export const placeholdersIn = (text: string): string[] => {
  const names: string[] = [];
  fillIn(text, (name) => {
    names.push(name);
    return "";
  });
  return names;
};

/** The name when the whole text is one placeholder. */
export const onlyPlaceholder = (text: string): string | undefined => /^\s*\{\{([^{}]*)\}\}\s*$/.exec(text)?.[1]?.trim();

/** Every name this manifest's texts may use. */
export const knownNames = (manifest: Manifest): Set<string> =>
  new Set([
    ...BUILT_IN,
    ...(manifest.parameters ?? []).map(({ name }) => `parameters.${name}`),
    ...(manifest.variables ?? []).map(({ name }) => `variables.${name}`),
  ]);

/** The environment variable that carries a value into scripts: `parameters.my-name` is SLIPWAY_PARAM_MY_NAME. */
export const environmentName = (name: string): string => {
  const [kind = "", ...rest] = name.split(".");
  const word = rest
    .join("_")
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]/g, "_");
  if (kind === "parameters") return `SLIPWAY_PARAM_${word}`;
  if (kind === "variables") return `SLIPWAY_VAR_${word}`;
  return `SLIPWAY_${kind.toUpperCase()}_${word}`;
};
