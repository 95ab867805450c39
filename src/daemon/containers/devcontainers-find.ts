// Finds devcontainers by configuration files in the agent's folder and its subfolders, and by labels of containers (facts/platform 5.3).
// Reads the disk on each call; opens only folders.
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { sha256, uuidFromBytes } from "#base/ids.ts";
import type { Container } from "#schema/workspaces/container.ts";

export const FOLDER_LABEL = "devcontainer.local_folder";
export const CONFIG_LABEL = "devcontainer.config_file";

/** The project folder and the configuration file from which a devcontainer can be created. */
export type DevcontainerPaths = { workspace_folder: string; config_path: string };

/** Maximum number of projects searched in the agent's folder, and of named configurations in one `.devcontainer` folder. */
const MAX_PROJECTS = 200;
const MAX_NAMED_CONFIGS = 20;

/** Finds the configurations in this folder and in its direct subfolders. */
export const findDevcontainers = (directory: string): DevcontainerPaths[] => {
  const subfolders = listFolders(directory).filter((name) => !name.startsWith(".") && name !== "node_modules");
  return [directory, ...subfolders.slice(0, MAX_PROJECTS).map((name) => join(directory, name))].flatMap(
    findProjectConfigs,
  );
};

const listDefaultConfigs = (workspace_folder: string): string[] => [
  join(workspace_folder, ".devcontainer", "devcontainer.json"),
  join(workspace_folder, ".devcontainer.json"),
];

/**
 * Returns the default configuration file of a folder: the first of the default paths that exists, else the first default path, because the
 * file may be created later.
 */
export const findDefaultConfig = (workspace_folder: string): string => {
  const [first = "", ...others] = listDefaultConfigs(workspace_folder);
  return [first, ...others].find((path) => readModifiedTime(path) !== undefined) ?? first;
};

/** Finds configuration files in the locations that the development containers specification allows. */
const findProjectConfigs = (workspace_folder: string): DevcontainerPaths[] => {
  const configFolder = join(workspace_folder, ".devcontainer");
  const named = listFolders(configFolder)
    .slice(0, MAX_NAMED_CONFIGS)
    .map((name) => join(configFolder, name, "devcontainer.json"));
  const first = listDefaultConfigs(workspace_folder).find((path) => readModifiedTime(path) !== undefined);
  return [...(first === undefined ? [] : [first]), ...named.filter((path) => readModifiedTime(path) !== undefined)].map(
    (config_path) => ({ workspace_folder, config_path }),
  );
};

/** Returns the locations of existing containers, regardless of who created them. */
export const listDevcontainerPaths = (containers: readonly Container[]): DevcontainerPaths[] =>
  containers.flatMap(({ labels }) => {
    const [workspace_folder, config_path] = [labels[FOLDER_LABEL], labels[CONFIG_LABEL]];
    return workspace_folder && config_path ? [{ workspace_folder, config_path }] : [];
  });

/** Returns the container of a location: a running one, else the newest. `containers` are sorted newest first. */
export const findContainer = (paths: DevcontainerPaths, containers: readonly Container[]): Container | undefined => {
  const ownContainers = containers.filter(
    ({ labels }) => labels[FOLDER_LABEL] === paths.workspace_folder && labels[CONFIG_LABEL] === paths.config_path,
  );
  return ownContainers.find(({ running }) => running) ?? ownContainers[0];
};

/** Returns milliseconds since 1970, or undefined if the file does not exist. */
export const readModifiedTime = (path: string): number | undefined => {
  try {
    const stats = statSync(path);
    return stats.isFile() ? stats.mtimeMs : undefined;
  } catch {
    return undefined;
  }
};

/** Derives a stable ID from a location (a name-based identifier, as version 8 of UUIDs allows). */
export const toDevcontainerId = ({ workspace_folder, config_path }: DevcontainerPaths): string => {
  const bytes = new Uint8Array(Buffer.from(sha256(`${workspace_folder}\0${config_path}`), "hex")).slice(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
};

/** Returns the folder's name in lower case with hyphens, with a number appended if the name is already used. */
export const toSafeName = (workspace_folder: string, usedNames: ReadonlySet<string>): string => {
  const base =
    basename(workspace_folder)
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 50) || "devcontainer";
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? base : `${base}-${n}`;
    if (!usedNames.has(name)) return name;
  }
};

const listFolders = (path: string): string[] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((one) => one.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch {
    return [];
  }
};
