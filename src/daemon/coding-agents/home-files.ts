// Files that the server gives to a coding agent in the agent's own home: instructions and skills in the form that it reads. The home is the
// chat's alone, so no file of a repository or of a person is touched, nor one that the agent has put there.
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { sha256 } from "#base/ids.ts";
import type { HomeFiles } from "#schema/agents/agent-program.ts";

/** What was given before: digests of texts, and targets of links, by path. */
type Given = Record<string, string>;
const RECORD = ".slipway-given.json";

/** Puts these files into the home and removes those of the last start. Throws for a path that leads out of it. */
export const putHomeFiles = (home: string, { home_files = [], home_links = [] }: HomeFiles): void => {
  const before = readRecord(home);
  for (const [path, mark] of Object.entries(before)) {
    if (readMark(home, path) === mark) rmSync(join(home, path), { force: true });
  }
  const given: Given = {};
  for (const { path, text } of home_files) {
    const file = freePlace(home, path);
    if (file === undefined) continue;
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    given[path] = sha256(text);
  }
  for (const { path, target } of home_links) {
    const link = freePlace(home, path);
    if (link === undefined) continue;
    symlinkSync(target, link);
    given[path] = target;
  }
  writeFileSync(join(home, RECORD), JSON.stringify(given), { mode: 0o600 });
};

/** The absolute path with its folder made; undefined where the agent or a person has put something of their own. */
const freePlace = (home: string, path: string): string | undefined => {
  const place = join(home, path);
  if (!place.startsWith(home + sep)) throw new Error(`"${path}" leads out of the agent's home.`);
  const folder = dirname(place);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!`${realpathSync(folder)}${sep}`.startsWith(realpathSync(home) + sep)) {
    throw new Error(`"${path}" leads out of the agent's home.`);
  }
  return lstatSync(place, { throwIfNoEntry: false }) === undefined ? place : undefined;
};

const readRecord = (home: string): Given => {
  try {
    return JSON.parse(readFileSync(join(home, RECORD), "utf8")) as Given;
  } catch {
    return {};
  }
};

/** What stands there now, in the form of the record; undefined: nothing. */
const readMark = (home: string, path: string): string | undefined => {
  const place = join(home, path);
  if (!place.startsWith(home + sep)) return undefined;
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) return readlinkSync(place);
  return found?.isFile() ? sha256(readFileSync(place, "utf8")) : undefined;
};
