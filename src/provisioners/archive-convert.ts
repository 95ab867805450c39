// Converts a tar archive to a zip archive while reading it in chunks. The zip archive is uncompressed. Used by downloads.
import { Zip, ZipPassThrough } from "fflate";
import { type Archive, withArchive } from "./archive.ts";
import type { Source } from "./archive-entry.ts";

const CHUNK_BYTES = 256 * 1024;

/** Returns the zip as a stream. Throws ArchiveError immediately if the tar archive is rejected. */
export const streamZip = async (path: string): Promise<ReadableStream<Uint8Array>> => {
  const opened = Promise.withResolvers<void>();
  const stream = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 1 }, { highWaterMark: 4 });
  const writer = stream.writable.getWriter();
  const work = withArchive(path, "application/x-tar", async (archive, source) => {
    opened.resolve();
    await writeZip(archive, source, (chunk) => writer.write(chunk));
    await writer.close();
  });
  work.catch((error) => {
    opened.reject(error);
    // A reader that disconnects is not an error.
    writer.abort(error).catch(() => {});
  });
  await opened.promise;
  return stream.readable;
};

const writeZip = async (
  { entries }: Archive,
  source: Source,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<void> => {
  const pendingChunks: Uint8Array[] = [];
  const zip = new Zip((error, chunk) => {
    if (error) throw error;
    pendingChunks.push(chunk);
  });
  const flush = async (): Promise<void> => {
    for (const chunk of pendingChunks.splice(0)) await write(chunk);
  };
  for (const entry of entries) {
    const zipEntry = new ZipPassThrough(entry.name);
    zipEntry.attrs = (0o100000 | entry.mode) << 16;
    zipEntry.os = 3;
    // Without a fixed time, the entry would carry the time of the download.
    zipEntry.mtime = new Date(1980, 0, 1);
    zip.add(zipEntry);
    const { offset } = entry.stored ?? { offset: 0 };
    for (let position = 0; position < entry.size; position += CHUNK_BYTES) {
      zipEntry.push(
        await source.read(offset + position, Math.min(CHUNK_BYTES, entry.size - position)),
        position + CHUNK_BYTES >= entry.size,
      );
      await flush();
    }
    if (entry.size === 0) zipEntry.push(new Uint8Array(), true);
  }
  zip.end();
  await flush();
};
