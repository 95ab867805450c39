// Reads one context file safely: only regular files inside the root, after resolving links, and never more than the limit (facts/chats 5.5,
// rules CX-2, CX-4).
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { sep } from "node:path";
import { trimPartialCharacter } from "../whole-characters.ts";

export type ContextFile =
  | { readonly status: "ok"; readonly bytes: Uint8Array; readonly real: string }
  /** `bytes`: the beginning of the file, in whole characters. */
  | {
      readonly status: "oversize";
      readonly size: number;
      readonly error: string;
      readonly bytes: Uint8Array;
      readonly real: string;
    }
  | { readonly status: "unreadable" | "excluded"; readonly size: number; readonly error: string };

/** Returns undefined if the file does not exist. */
export const readContextFile = async (path: string, root: string, limit: number): Promise<ContextFile | undefined> => {
  const real = await realpath(path).catch((error: { code?: string }) => error.code ?? "EIO");
  if (real === "ENOENT" || real === "ENOTDIR") return undefined;
  if (!real.startsWith(sep)) return { status: "unreadable", size: 0, error: `cannot be read (${real})` };
  if (!isInside(real, root)) return { status: "excluded", size: 0, error: "leads out of its folder" };
  try {
    // Fails if the path has become a link in the meantime, and does not block on a pipe.
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size, isFile } = await file.stat().then((one) => ({ size: one.size, isFile: one.isFile() }));
      if (!isFile) return { status: "unreadable", size: 0, error: "is not a regular file" };
      // Reads one byte more than the reported size, to detect a file that is growing.
      const bytes = new Uint8Array(size > limit ? limit : size + 1);
      let read = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, read, bytes.length - read, read);
        read += bytesRead;
        if (bytesRead === 0 || read === bytes.length) break;
      }
      if (size > limit) {
        const error = `has ${size} bytes, more than ${limit}`;
        return { status: "oversize", size, error, bytes: dropPartialCharacter(bytes.slice(0, read)), real };
      }
      if (read > size) return { status: "unreadable", size: read, error: "changes while it is read" };
      return { status: "ok", bytes: bytes.slice(0, read), real };
    } finally {
      await file.close();
    }
  } catch (error) {
    const { code = "EIO" } = error as { code?: string };
    return { status: "unreadable", size: 0, error: `cannot be read (${code})` };
  }
};

/** Decodes UTF-8, or UTF-16 if the bytes indicate it: by a byte order mark, or by a zero in every other byte of Latin text. */
export const decodeText = (bytes: Uint8Array): string => {
  const encoding = detectUtf16(bytes);
  return new TextDecoder(encoding ?? "utf-8").decode(
    encoding === undefined ? bytes : bytes.subarray(0, bytes.length & ~1),
  );
};

const DETECTION_BYTES = 256;

const dropPartialCharacter = (bytes: Uint8Array): Uint8Array =>
  detectUtf16(bytes) === undefined ? trimPartialCharacter(bytes) : bytes;

const detectUtf16 = (bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined => {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  const head = bytes.subarray(0, DETECTION_BYTES);
  const zeros = [0, 0];
  for (const [index, byte] of head.entries()) if (byte === 0) zeros[index & 1] = (zeros[index & 1] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  const threshold = head.length / 4;
  if (odd > threshold && even === 0) return "utf-16le";
  return even > threshold && odd === 0 ? "utf-16be" : undefined;
};

/** Returns true if the path is the folder or below it. Both must have links resolved. */
export const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
