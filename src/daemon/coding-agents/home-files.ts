// Writes the files that the server adds to a coding agent's home: instructions and skills in the format the agent reads. The home belongs
// to one chat, so it has no files of repositories or people; files that the agent created are left alone.
import {
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { sha256, uuid } from "#base/ids.ts";
import { readRegularText } from "#base/system/regular-file.ts";
import type { HomeFiles } from "#schema/agents/agent-program.ts";

/** The files written at the last start: the digest of each file's text or the link's target, by path. */
type FileMarks = Record<string, string>;
const RECORD_FILE = ".slipway-given.json";

/** Writes these files into the home and removes the files of the last start. Throws for a path that leads out of the home. */
export const writeHomeFiles = (home: string, { home_files = [], home_links = [] }: HomeFiles): void => {
  const previous = readRecord(home);
  for (const [path, mark] of Object.entries(previous)) {
    if (readMark(home, path) === mark) rmSync(join(home, path), { force: true });
  }
  const written: FileMarks = {};
  for (const { path, text } of home_files) {
    const file = prepareFreePath(home, path);
    if (file === undefined) continue;
    writeFileSync(file, text, { mode: 0o600, flag: "wx" });
    written[path] = sha256(text);
  }
  for (const { path, target } of home_links) {
    const link = prepareFreePath(home, path);
    if (link === undefined) continue;
    symlinkSync(target, link);
    written[path] = target;
  }
  const draft = join(home, `${RECORD_FILE}.${uuid()}`);
  writeFileSync(draft, JSON.stringify(written), { mode: 0o600, flag: "wx" });
  renameSync(draft, join(home, RECORD_FILE));
};

/** Returns the absolute path after creating its folder; undefined if the agent or a person has put something else there. */
const prepareFreePath = (home: string, path: string): string | undefined => {
  const file = join(home, path);
  if (!file.startsWith(home + sep)) throw new Error(`"${path}" leads out of the agent's home.`);
  const folder = dirname(file);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!`${realpathSync(folder)}${sep}`.startsWith(realpathSync(home) + sep)) {
    throw new Error(`"${path}" leads out of the agent's home.`);
  }
  return lstatSync(file, { throwIfNoEntry: false }) === undefined ? file : undefined;
};

const readRecord = (home: string): FileMarks => {
  try {
    return JSON.parse(readRegularText(join(home, RECORD_FILE)) ?? "{}") as FileMarks;
  } catch {
    return {};
  }
};

/** Returns the digest or link target of the path, as in the record; undefined if nothing is there. */
const readMark = (home: string, path: string): string | undefined => {
  const file = join(home, path);
  if (!file.startsWith(home + sep)) return undefined;
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats?.isSymbolicLink()) return readlinkSync(file);
  const text = stats?.isFile() ? readRegularText(file) : undefined;
  return text === undefined ? undefined : sha256(text);
};
