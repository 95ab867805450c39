// What readers of archives share: entries, safe names and the bound on what they unpack to.

const ENTRY_LIMIT = 10_000;
/** Bytes of all entries together. */
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
