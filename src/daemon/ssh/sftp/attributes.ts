// SFTP file attributes (draft-ietf-secsh-filexfer-02 section 5), and the long name in the format of `ls -l`. [WN-5]
import type { Stats } from "node:fs";
import { chmod, chown, truncate, utimes } from "node:fs/promises";
import type { Field, Fields } from "./codec.ts";

const ATTRIBUTE_FLAG = { size: 1, owner: 2, mode: 4, times: 8, extended: 0x80000000 } as const;

export type Attributes = {
  size?: number;
  owner?: { uid: number; gid: number };
  mode?: number;
  /** Seconds since 1970. */
  times?: { atime: number; mtime: number };
};

export const readAttributes = (fields: Fields): Attributes => {
  const flags = fields.uint32();
  const attributes: Attributes = {};
  if (flags & ATTRIBUTE_FLAG.size) attributes.size = fields.long();
  if (flags & ATTRIBUTE_FLAG.owner) attributes.owner = { uid: fields.uint32(), gid: fields.uint32() };
  if (flags & ATTRIBUTE_FLAG.mode) attributes.mode = fields.uint32();
  if (flags & ATTRIBUTE_FLAG.times) attributes.times = { atime: fields.uint32(), mtime: fields.uint32() };
  if (flags & ATTRIBUTE_FLAG.extended) {
    for (let remaining = fields.uint32(); remaining > 0 && !fields.isOver; remaining -= 1) {
      fields.bytes();
      fields.bytes();
    }
  }
  return attributes;
};

export const toAttributeFields = ({ size, uid, gid, mode, atimeMs, mtimeMs }: Stats): Field[] => [
  { word: ATTRIBUTE_FLAG.size | ATTRIBUTE_FLAG.owner | ATTRIBUTE_FLAG.mode | ATTRIBUTE_FLAG.times },
  { long: size },
  ...[uid, gid, mode, Math.floor(atimeMs / 1_000), Math.floor(mtimeMs / 1_000)].map((word) => ({ word })),
];

export const NO_ATTRIBUTES: Field[] = [{ word: 0 }];

/** Sets the given attributes, in an order in which no change prevents the next one. */
export const setAttributes = async (path: string, { size, owner, mode, times }: Attributes): Promise<void> => {
  if (size !== undefined) await truncate(path, size);
  if (owner) await chown(path, owner.uid, owner.gid);
  if (mode !== undefined) await chmod(path, mode & 0o7777);
  if (times) await utimes(path, times.atime, times.mtime);
};

const KINDS: readonly [number, string][] = [
  [0o040000, "d"],
  [0o120000, "l"],
  [0o020000, "c"],
  [0o060000, "b"],
  [0o140000, "s"],
  [0o010000, "p"],
];

/** Returns a line in the format of `ls -l`. */
export const formatLongName = (name: string, stats: Stats): string => {
  const kind = KINDS.find(([bits]) => (stats.mode & 0o170000) === bits)?.[1] ?? "-";
  const rights = [6, 3, 0].map((shift) => ((stats.mode >> shift) & 7).toString(2).padStart(3, "0"));
  const mode = rights.map((bits) => [...bits].map((bit, i) => (bit === "1" ? "rwx"[i] : "-")).join("")).join("");
  const [, month, day, year, time = ""] = stats.mtime
    .toUTCString()
    .replace(/^\w+, (\d+) (\w+)/, "x $2 $1")
    .split(" ");
  const columns = [String(stats.nlink).padStart(4), String(stats.uid).padEnd(8), String(stats.gid).padEnd(8)];
  return `${kind}${mode} ${columns.join(" ")} ${String(stats.size).padStart(8)} ${month} ${day?.padStart(2)} ${time.slice(0, 5)} ${year} ${name}`;
};
