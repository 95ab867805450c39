// Files that the server puts into a coding agent's home: instructions and skills in the format the agent reads. The home belongs to one
// chat, so no file of a repository or a person is touched, nor one that the agent created.
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

/** Files written at the last start: text digests and link targets, by path. */
type FileMarks = Record<string, string>;
const RECORD_FILE = ".slipway-given.json";

/** Writes these files into the home and removes those of the last start. Throws for a path that leads out of the home. */
export const writeHomeFiles = (home: string, { home_files = [], home_links = [] }: HomeFiles): void => {
  const before = readRecord(home);
  for (const [path, mark] of Object.entries(before)) {
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

/** Returns what the path holds now, in the form of the record; undefined if nothing. */
const readMark = (home: string, path: string): string | undefined => {
  const file = join(home, path);
  if (!file.startsWith(home + sep)) return undefined;
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) return readlinkSync(file);
  const text = found?.isFile() ? readRegularText(file) : undefined;
  return text === undefined ? undefined : sha256(text);
};
