// Reads uploaded archives from disk without unpacking them: lists their entries, and reads single files up to a maximum size. Rejects
// archives that are damaged or too large, have too many entries, or have names that lead out of the archive (rules TP-5 to TP-7).

import { open } from "node:fs/promises";
import type { ArchiveEntry, Source } from "./archive-entry.ts";
import { readTar } from "./archive-tar.ts";
import { readZip } from "./archive-zip.ts";

export type Archive = { readonly entries: readonly ArchiveEntry[] };

/** Opens the archive file, passes it to `use`, and closes it. `mimetype` is application/x-tar or application/zip. */
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
      let filled = 0;
      while (filled < buffer.length) {
        const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, offset + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return buffer.subarray(0, filled);
    },
  };
  const entries = mimetype === "application/zip" ? await readZip(source) : await readTar(source);
  // `await` keeps the file open until `use` has ended.
  return await use({ entries: omitReplaced(entries) }, source);
};

/** If several entries have the same name, returns only the last one. */
const omitReplaced = (entries: readonly ArchiveEntry[]): ArchiveEntry[] => {
  const byName = new Map<string, ArchiveEntry>();
  for (const entry of entries) byName.set(entry.name, entry);
  return [...byName.values()];
};
