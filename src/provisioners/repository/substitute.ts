// Fills in variables of a devcontainer.json. `${localEnv:X}` never reads the server's environment, `${containerEnv:X}` becomes a variable
// of the workspace's shell, and folders become a placeholder until the clone's location is known.
import { basename } from "node:path/posix";
import { type Configuration, FOLDER_VARIABLE, isMapping, recordDropped } from "./configuration.ts";

type KnownValues = { readonly name: string; readonly folder: string };

/** Excludes braces inside of a variable. Otherwise an unclosed variable would be scanned again for each following brace. */
const VARIABLE = /\$\{([a-zA-Z]+)(?::([^{}:]*)(?::([^{}]*))?)?\}/g;

/** The placeholder for the clone's folder in texts of a plan, which apply-plan.ts fills in. */
const CLONE_FOLDER = `\${${FOLDER_VARIABLE}}`;

const MAX_DEPTH = 16;

/** Returns the value with the variables in all its strings filled in. */
export const substitute = (value: unknown, values: KnownValues, config: Configuration, depth = 0): unknown => {
  if (typeof value === "string") return substituteText(value, values, config);
  if (depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((one) => substitute(one, values, config, depth + 1));
  if (!isMapping(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, substitute(one, values, config, depth + 1)]),
  );
};

const substituteText = (text: string, values: KnownValues, config: Configuration): string =>
  text.includes("${")
    ? text.replace(VARIABLE, (match, name: string, argument = "", fallback = "") =>
        substituteVariable(match, name, argument, fallback, values, config),
      )
    : text;

const substituteVariable = (
  match: string,
  name: string,
  variableName: string,
  fallback: string,
  values: KnownValues,
  config: Configuration,
): string => {
  switch (name) {
    case "localWorkspaceFolder":
    case "containerWorkspaceFolder":
      return CLONE_FOLDER;
    case "localWorkspaceFolderBasename":
    case "containerWorkspaceFolderBasename":
      return values.folder === "" ? values.name : basename(values.folder);
    case "devcontainerId":
      return values.name;
    case "containerEnv":
    case "remoteEnv":
      return /^[A-Za-z_]\w*$/.test(variableName) ? `\${${variableName}}` : match;
    case "localEnv":
    case "env":
      if (fallback === "" && !config.dropped.some(({ property }) => property === `localEnv:${variableName}`)) {
        recordDropped(
          config,
          `localEnv:${variableName}`,
          "The server's environment is not passed on, so this is empty.",
        );
      }
      return fallback;
    default:
      return match;
  }
};
