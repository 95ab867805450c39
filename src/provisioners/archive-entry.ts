// Shared parts of the archive readers: entries, safe names, and the limit on unpacked size.

const MAX_ENTRIES = 10_000;
/** Maximum bytes of all entries together. */
const MAX_INFLATED_BYTES = 512 * 1024 * 1024;

/** Thrown for a rejected archive. The message is for users. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** A regular file in an archive. */
export type ArchiveEntry = {
  /** Relative, with `/`, without `.` and `..` parts. */
  readonly name: string;
  readonly size: number;
  readonly mode: number;
  /** Returns the whole content. Throws ArchiveError if it is damaged or longer than `limit`. */
  read(limit: number): Promise<Uint8Array>;
  /** The position of the content in the archive, if it is stored uncompressed. */
  readonly stored?: { readonly offset: number };
};

/** Random access to the archive's bytes. `read` returns fewer bytes only at the end. */
export type Source = { readonly size: number; read(offset: number, length: number): Promise<Uint8Array> };

/** Returns the normalized name, or undefined for the root folder. Throws ArchiveError for a name that leads out of the archive. */
export const toSafeName = (rawName: string): string | undefined => {
  if (rawName.length > 1024) throw new ArchiveError("a name in the archive is too long");
  const shown = JSON.stringify(rawName.slice(0, 80));
  if (/\p{Cc}/u.test(rawName)) throw new ArchiveError(`the name ${shown} in the archive holds control characters`);
  if (rawName.includes("\\")) throw new ArchiveError(`the name ${shown} in the archive holds a backslash`);
  if (rawName.startsWith("/") || /^[a-zA-Z]:/.test(rawName))
    throw new ArchiveError(`the name ${shown} in the archive is absolute`);
  const parts = rawName.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw new ArchiveError(`the name ${shown} in the archive leads out of it`);
  return parts.length === 0 ? undefined : parts.join("/");
};

/** Returns a function that counts an entry of the given size, and throws if the archive has too many entries or bytes. */
export const createSizeLimit = (): ((size: number) => void) => {
  let entries = 0;
  let bytes = 0;
  return (size) => {
    entries += 1;
    bytes += size;
    if (entries > MAX_ENTRIES) throw new ArchiveError(`the archive has more than ${MAX_ENTRIES} entries`);
    if (bytes > MAX_INFLATED_BYTES)
      throw new ArchiveError(`the archive unpacks to more than ${MAX_INFLATED_BYTES} bytes`);
  };
};
