// Reads files that programs of a workspace or its image may have replaced by something else: a pipe, on which reading would wait forever,
// an endless device, or a file that fills the memory.
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";

const CHUNK_BYTES = 64 * 1024;
const MAX_TEXT_BYTES = 16 * 1024 * 1024;

const { O_APPEND, O_CREAT, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** The flags to append to a log file. With them, opening a pipe without a reader fails instead of waiting for one. */
export const APPEND_FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK;

/** Returns the bytes of a regular file, following links. Throws for any other kind of file, and for more than `max` bytes. */
export const readRegularFile = (path: string, max: number): Buffer => {
  // Opening some devices has an effect, so they are not opened at all.
  if (!statSync(path).isFile()) throw createNotRegularError(path);
  // With these flags, opening does not wait if the path has become a pipe since the check.
  const file = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    if (!fstatSync(file).isFile()) throw createNotRegularError(path);
    const chunks: Buffer[] = [];
    for (let size = 0; ; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSync(file, chunk);
      if (read === 0) return Buffer.concat(chunks);
      size += read;
      if (size > max) throw new Error(`${path} has more than ${max} bytes`);
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    closeSync(file);
  }
};

/** Returns the text of a regular file; undefined if it is missing, cannot be read, is of another kind, or has more than `max` bytes. */
export const readRegularText = (path: string, max = MAX_TEXT_BYTES): string | undefined => {
  try {
    return readRegularFile(path, max).toString("utf8");
  } catch {
    return undefined;
  }
};

const createNotRegularError = (path: string): Error => new Error(`${path} is not a regular file`);
