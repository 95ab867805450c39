// Converts a tar archive to zip while reading it: holds one entry in memory at a time and stores contents uncompressed. Used by downloads.
import { Zip, ZipPassThrough } from "fflate";
import { type Archive, withArchive } from "./archive.ts";
import type { Source } from "./archive-entry.ts";

const CHUNK = 256 * 1024;

/** Returns the zip as a stream. Throws ArchiveError immediately if the tar archive is rejected. */
export const streamZip = async (path: string): Promise<ReadableStream<Uint8Array>> => {
  const opened = Promise.withResolvers<void>();
  const stream = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 1 }, { highWaterMark: 4 });
  const writer = stream.writable.getWriter();
  const work = withArchive(path, "application/x-tar", async (archive, source) => {
    opened.resolve();
    await pack(archive, source, (chunk) => writer.write(chunk));
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

const pack = async (
  { entries }: Archive,
  source: Source,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<void> => {
  const ready: Uint8Array[] = [];
  const zip = new Zip((error, chunk) => {
    if (error) throw error;
    ready.push(chunk);
  });
  const flush = async (): Promise<void> => {
    for (const chunk of ready.splice(0)) await write(chunk);
  };
  for (const entry of entries) {
    const packed = new ZipPassThrough(entry.name);
    packed.attrs = (0o100000 | entry.mode) << 16;
    packed.os = 3;
    // Without a fixed time, the entry would carry the time of the download.
    packed.mtime = new Date(1980, 0, 1);
    zip.add(packed);
    const { offset } = entry.stored ?? { offset: 0 };
    for (let at = 0; at < entry.size; at += CHUNK) {
      packed.push(await source.read(offset + at, Math.min(CHUNK, entry.size - at)), at + CHUNK >= entry.size);
      await flush();
    }
    if (entry.size === 0) packed.push(new Uint8Array(), true);
  }
  zip.end();
  await flush();
};
