// The variables of a devcontainer.json: `${localEnv:X}` never reads the server's environment, `${containerEnv:X}` becomes a variable that
// the workspace's own programs expand, and folders stay as they are until it is known where the clone will be.
import { basename } from "node:path/posix";
import { type Configuration, drop, FOLDER_VARIABLE, isMapping } from "./configuration.ts";

type Known = { readonly name: string; readonly folder: string };

/** Without a brace inside: one that is never closed is looked through once, not again for each that it holds. */
const VARIABLE = /\$\{([a-zA-Z]+)(?::([^{}:]*)(?::([^{}]*))?)?\}/g;

/** Stands for the folder of the clone in texts of a plan (place.ts fills it in). */
const CLONE_FOLDER = `\${${FOLDER_VARIABLE}}`;

const MAX_DEPTH = 16;

/** Every text of the value with what is known filled in. */
export const substitute = (value: unknown, known: Known, to: Configuration, depth = 0): unknown => {
  if (typeof value === "string") return substituted(value, known, to);
  if (depth > MAX_DEPTH) return undefined;
  if (Array.isArray(value)) return value.map((one) => substitute(one, known, to, depth + 1));
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, substitute(one, known, to, depth + 1)]));
};

const substituted = (text: string, known: Known, to: Configuration): string =>
  text.includes("${")
    ? text.replace(VARIABLE, (whole, name: string, of = "", otherwise = "") =>
        filledIn(whole, name, of, otherwise, known, to),
      )
    : text;

const filledIn = (
  whole: string,
  name: string,
  of: string,
  otherwise: string,
  known: Known,
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
      return /^[A-Za-z_]\w*$/.test(of) ? `\${${of}}` : whole;
    case "localEnv":
    case "env":
      if (otherwise === "" && !to.dropped.some(({ property }) => property === `localEnv:${of}`)) {
        drop(to, `localEnv:${of}`, "The server's environment is not passed on, so this is empty.");
      }
      return otherwise;
    default:
      return whole;
  }
};
