// Reads one file of the context safely: regular files inside the root alone, whatever links say, and never more than the limit
// (facts/chats 5.5, rules CX-2, CX-4).
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { sep } from "node:path";
import { wholeCharacters } from "../whole-characters.ts";

export type ContextFile =
  | { readonly status: "ok"; readonly bytes: Uint8Array; readonly real: string }
  /** `bytes`: its beginning, with whole characters. */
  | {
      readonly status: "oversize";
      readonly size: number;
      readonly error: string;
      readonly bytes: Uint8Array;
      readonly real: string;
    }
  | { readonly status: "unreadable" | "excluded"; readonly size: number; readonly error: string };

/** Undefined when there is no such file. */
export const readContextFile = async (path: string, root: string, limit: number): Promise<ContextFile | undefined> => {
  const real = await realpath(path).catch((error: { code?: string }) => error.code ?? "EIO");
  if (real === "ENOENT" || real === "ENOTDIR") return undefined;
  if (!real.startsWith(sep)) return { status: "unreadable", size: 0, error: `cannot be read (${real})` };
  if (!isInside(real, root)) return { status: "excluded", size: 0, error: "leads out of its folder" };
  try {
    // A link put in its place in the meantime is not followed, and a pipe does not keep us waiting.
    const file = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size, isFile } = await file.stat().then((one) => ({ size: one.size, isFile: one.isFile() }));
      if (!isFile) return { status: "unreadable", size: 0, error: "is no regular file" };
      // One byte more than it said, to see whether it has grown in the meantime.
      const bytes = new Uint8Array(size > limit ? limit : size + 1);
      let read = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, read, bytes.length - read, read);
        read += bytesRead;
        if (bytesRead === 0 || read === bytes.length) break;
      }
      if (size > limit) {
        const error = `has ${size} bytes, more than ${limit}`;
        return { status: "oversize", size, error, bytes: wholeEnd(bytes.slice(0, read)), real };
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

/** Decodes UTF-8, or UTF-16 where the bytes say so: by a byte order mark, or by a zero in every other byte of a text in Latin letters. */
export const decodeText = (bytes: Uint8Array): string => {
  const encoding = utf16In(bytes);
  return new TextDecoder(encoding ?? "utf-8").decode(
    encoding === undefined ? bytes : bytes.subarray(0, bytes.length & ~1),
  );
};

const LOOKED_AT = 256;

const wholeEnd = (bytes: Uint8Array): Uint8Array => (utf16In(bytes) === undefined ? wholeCharacters(bytes) : bytes);

const utf16In = (bytes: Uint8Array): "utf-16le" | "utf-16be" | undefined => {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  const head = bytes.subarray(0, LOOKED_AT);
  const zeros = [0, 0];
  for (const [at, byte] of head.entries()) if (byte === 0) zeros[at & 1] = (zeros[at & 1] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  const most = head.length / 4;
  if (odd > most && even === 0) return "utf-16le";
  return even > most && odd === 0 ? "utf-16be" : undefined;
};

/** True when the path is the folder or below it; both without links. */
export const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
