// Finds a file with a name that looks like the requested one: models write plain spaces and composed letters where the disk has others.
import { access, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Returns the path if it exists, else the only path that looks the same, else the path unchanged. */
export const resolveSimilarPath = async (path: string): Promise<string> => (await findLike(path)) ?? path;

const findLike = async (path: string): Promise<string | undefined> => {
  if (await pathExists(path)) return path;
  const above = dirname(path);
  const folder = above === path ? undefined : await findLike(above);
  if (folder === undefined) return undefined;
  const normalizedName = normalizeLook(basename(path));
  const names = await readdir(folder).catch(() => []);
  const [found, ...others] = names.filter((name) => normalizeLook(name) === normalizedName);
  return found !== undefined && others.length === 0 ? join(folder, found) : undefined;
};

const normalizeLook = (name: string): string =>
  name
    .normalize("NFC")
    .replace(/\s/gu, " ")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[\u2010-\u2015]/g, "-");

const pathExists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
