// Uploaded archives, read from disk without unpacking: a list of names, and the bytes of one file at a time, each bounded. Refused with a
// reason: names that point outside, too many entries, what would inflate to too much, damage (rules TP-5 to TP-7).
import { open } from "node:fs/promises";
import { readTar } from "./archive-tar.ts";
import { readZip } from "./archive-zip.ts";

/** Entries of an archive. */
const ENTRY_LIMIT = 10_000;
/** Bytes of all entries together, as they claim to be after inflating. */
const INFLATED_LIMIT = 512 * 1024 * 1024;

/** Why an archive is refused, in words for people. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** A regular file in an archive. */
export type ArchiveEntry = {
  /** Relative, with `/`, without `.` and `..` parts. */
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  /** The whole content; throws ArchiveError when it is longer than `limit` or damaged. */
  read(limit: number): Promise<Uint8Array>;
  /** Where the bytes lie in the archive when they are stored as they are. */
  readonly stored?: { readonly offset: number };
};

/** Random access to the archive's bytes. `read` gives fewer bytes only at the end. */
export type Source = { readonly size: number; read(offset: number, length: number): Promise<Uint8Array> };

export type Archive = { readonly entries: readonly ArchiveEntry[] };

/** Opens the archive file, hands it to `use`, and closes it. `mimetype` is application/x-tar or application/zip. */
export const withArchive = async <T>(
  path: string,
  mimetype: string,
  use: (archive: Archive, source: Source) => Promise<T>,
): Promise<T> => {
  await using file = await open(path, "r");
  const { size } = await file.stat();
  const source: Source = {
    size,
    async read(offset, length) {
      const buffer = new Uint8Array(Math.max(0, Math.min(length, size - offset)));
      let at = 0;
      while (at < buffer.length) {
        const { bytesRead } = await file.read(buffer, at, buffer.length - at, offset + at);
        if (bytesRead === 0) break;
        at += bytesRead;
      }
      return buffer.subarray(0, at);
    },
  };
  const entries = mimetype === "application/zip" ? await readZip(source) : await readTar(source);
  // Awaited here, because the file is closed when this function ends.
  return await use({ entries: checkNames(entries) }, source);
};

const checkNames = (entries: readonly ArchiveEntry[]): ArchiveEntry[] => {
  const byName = new Map<string, ArchiveEntry>();
  for (const entry of entries) byName.set(entry.name, entry);
  return [...byName.values()];
};

/** The name as it is used, or undefined for a folder that is the root itself. Throws for one that points elsewhere. */
export const safeName = (raw: string): string | undefined => {
  if (raw.length > 1024) throw new ArchiveError("a name in the archive is too long");
  const shown = JSON.stringify(raw.slice(0, 80));
  if (/\p{Cc}/u.test(raw)) throw new ArchiveError(`the name ${shown} in the archive holds control characters`);
  if (raw.includes("\\")) throw new ArchiveError(`the name ${shown} in the archive holds a backslash`);
  if (raw.startsWith("/") || /^[a-zA-Z]:/.test(raw))
    throw new ArchiveError(`the name ${shown} in the archive is absolute`);
  const parts = raw.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new ArchiveError(`the name ${shown} in the archive leads out of it`);
  return parts.length === 0 ? undefined : parts.join("/");
};

/** Adds up what entries claim to be; throws when it is too much. */
export const counter = (): ((size: number) => void) => {
  let entries = 0;
  let bytes = 0;
  return (size) => {
    entries += 1;
    bytes += size;
    if (entries > ENTRY_LIMIT) throw new ArchiveError(`the archive has more than ${ENTRY_LIMIT} entries`);
    if (bytes > INFLATED_LIMIT) throw new ArchiveError(`the archive unpacks to more than ${INFLATED_LIMIT} bytes`);
  };
};
