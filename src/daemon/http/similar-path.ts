// Finds a file with a name that looks like the requested one: models write plain spaces and composed letters even if the file's name has
// other characters.
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathExists } from "../path-exists.ts";

/** Returns the path if it exists, else the only path that looks the same, else the path unchanged. */
export const resolveSimilarPath = async (path: string): Promise<string> => (await findSimilarPath(path)) ?? path;

const findSimilarPath = async (path: string): Promise<string | undefined> => {
  if (await pathExists(path)) return path;
  const parent = dirname(path);
  const folder = parent === path ? undefined : await findSimilarPath(parent);
  if (folder === undefined) return undefined;
  const normalizedName = normalizeLook(basename(path));
  const names = await readdir(folder).catch(() => []);
  const [match, ...others] = names.filter((name) => normalizeLook(name) === normalizedName);
  return match !== undefined && others.length === 0 ? join(folder, match) : undefined;
};

const normalizeLook = (name: string): string =>
  name
    .normalize("NFC")
    .replace(/\s/gu, " ")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u2010-\u2015]/g, "-");
