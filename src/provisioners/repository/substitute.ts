// Variables of a devcontainer.json: `${localEnv:X}` never reads the server's environment, `${containerEnv:X}` becomes a variable that the
// workspace's programs expand, and folders stay as variables until the clone's location is known.
import { basename } from "node:path/posix";
import { type Configuration, FOLDER_VARIABLE, isMapping, recordDropped } from "./configuration.ts";

type KnownValues = { readonly name: string; readonly folder: string };

/** Excludes braces inside, so that an unclosed one is scanned once and not once per brace that follows. */
const VARIABLE = /\$\{([a-zA-Z]+)(?::([^{}:]*)(?::([^{}]*))?)?\}/g;

/** Stands for the clone's folder in texts of a plan (apply-plan.ts fills it in). */
const CLONE_FOLDER = `\${${FOLDER_VARIABLE}}`;

const MAX_DEPTH = 16;

/** Returns the value with known variables filled in, in every text. */
export const substitute = (value: unknown, known: KnownValues, to: Configuration, depth = 0): unknown => {
  if (typeof value === "string") return substituteText(value, known, to);
  if (depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((one) => substitute(one, known, to, depth + 1));
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, substitute(one, known, to, depth + 1)]));
};

const substituteText = (text: string, known: KnownValues, to: Configuration): string =>
  text.includes("${")
    ? text.replace(VARIABLE, (whole, name: string, of = "", otherwise = "") =>
        substituteVariable(whole, name, of, otherwise, known, to),
      )
    : text;

const substituteVariable = (
  whole: string,
  name: string,
  variableName: string,
  otherwise: string,
  known: KnownValues,
  to: Configuration,
): string => {
  switch (name) {
    case "localWorkspaceFolder":
    case "containerWorkspaceFolder":
      return CLONE_FOLDER;
    case "localWorkspaceFolderBasename":
    case "containerWorkspaceFolderBasename":
      return known.folder === "" ? known.name : basename(known.folder);
    case "devcontainerId":
      return known.name;
    case "containerEnv":
    case "remoteEnv":
      return /^[A-Za-z_]\w*$/.test(variableName) ? `\${${variableName}}` : whole;
    case "localEnv":
    case "env":
      if (otherwise === "" && !to.dropped.some(({ property }) => property === `localEnv:${variableName}`)) {
        recordDropped(to, `localEnv:${variableName}`, "The server's environment is not passed on, so this is empty.");
      }
      return otherwise;
    default:
      return whole;
  }
};
