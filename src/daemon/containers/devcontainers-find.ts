// Which devcontainers there are: those the template names, files in the agent's folder and the folders in it, and containers that carry
// the labels of one (facts/platform 5.3). Looks at the disk each time it is asked; opens nothing but folders.
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { sha256, uuidFromBytes } from "#base/ids.ts";
import type { Container } from "#schema/workspaces/container.ts";

export const FOLDER_LABEL = "devcontainer.local_folder";
export const CONFIG_LABEL = "devcontainer.config_file";

/** One place on disk where a devcontainer may be made. */
export type DevcontainerPlace = { workspace_folder: string; config_path: string };

/** Projects in the agent's folder that are looked at, and named files in one `.devcontainer`. */
const MAX_FOLDERS = 200;
const MAX_FILES = 20;

/** The files in this folder and in the folders right below it. */
export const placesIn = (directory: string): DevcontainerPlace[] => {
  const below = folders(directory).filter((name) => !name.startsWith(".") && name !== "node_modules");
  return [directory, ...below.slice(0, MAX_FOLDERS).map((name) => join(directory, name))].flatMap(placesOfProject);
};

const usualConfigs = (workspace_folder: string): string[] => [
  join(workspace_folder, ".devcontainer", "devcontainer.json"),
  join(workspace_folder, ".devcontainer.json"),
];

/** The file of a folder for which none is named: the first usual one that is there, else the first, which may come later. */
export const findDefaultConfig = (workspace_folder: string): string => {
  const [first = "", ...others] = usualConfigs(workspace_folder);
  return [first, ...others].find((path) => changedAt(path) !== undefined) ?? first;
};

/** Where the specification of development containers lets the file stand. */
const placesOfProject = (workspace_folder: string): DevcontainerPlace[] => {
  const inside = join(workspace_folder, ".devcontainer");
  const named = folders(inside)
    .slice(0, MAX_FILES)
    .map((name) => join(inside, name, "devcontainer.json"));
  const first = usualConfigs(workspace_folder).find((path) => changedAt(path) !== undefined);
  return [...(first === undefined ? [] : [first]), ...named.filter((path) => changedAt(path) !== undefined)].map(
    (config_path) => ({ workspace_folder, config_path }),
  );
};

/** The places whose containers are there, whoever made them. */
export const listPlaces = (containers: readonly Container[]): DevcontainerPlace[] =>
  containers.flatMap(({ labels }) => {
    const [workspace_folder, config_path] = [labels[FOLDER_LABEL], labels[CONFIG_LABEL]];
    return workspace_folder && config_path ? [{ workspace_folder, config_path }] : [];
  });

/** The container of a place: a running one, else the newest. `containers` stand newest first. */
export const containerAt = (place: DevcontainerPlace, containers: readonly Container[]): Container | undefined => {
  const mine = containers.filter(
    ({ labels }) => labels[FOLDER_LABEL] === place.workspace_folder && labels[CONFIG_LABEL] === place.config_path,
  );
  return mine.find(({ running }) => running) ?? mine[0];
};

/** Milliseconds since 1970; undefined when there is no such file. */
export const changedAt = (path: string): number | undefined => {
  try {
    const found = statSync(path);
    return found.isFile() ? found.mtimeMs : undefined;
  } catch {
    return undefined;
  }
};

/** Always the same for one place (an identifier made from its name, as version 8 of UUIDs allows). */
export const idOfPlace = ({ workspace_folder, config_path }: DevcontainerPlace): string => {
  const bytes = new Uint8Array(Buffer.from(sha256(`${workspace_folder}\0${config_path}`), "hex")).slice(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return uuidFromBytes(bytes);
};

/** The folder's name in lower case with hyphens; a number where it is taken. */
export const safeName = (workspace_folder: string, taken: ReadonlySet<string>): string => {
  const plain =
    basename(workspace_folder)
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 50) || "devcontainer";
  for (let n = 1; ; n += 1) {
    const name = n === 1 ? plain : `${plain}-${n}`;
    if (!taken.has(name)) return name;
  }
};

const folders = (path: string): string[] => {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((one) => one.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch {
    return [];
  }
};
