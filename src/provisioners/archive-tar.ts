// Reads the headers of a tar archive (ustar, GNU long names, pax paths and sizes). Skips links and devices. Used by archive.ts.
import { type ArchiveEntry, ArchiveError, createSizeLimit, type Source, toSafeName } from "./archive-entry.ts";

const BLOCK_BYTES = 512;
/** Kinds of entries, in byte 156 of a header. */
const GNU_LONG_NAME = "L";
const GNU_LONG_LINK = "K";
const PAX_HEADER = "x";
const PAX_GLOBAL_HEADER = "g";
const FILE_KINDS = ["0", "\0", "7"];
/** Maximum bytes of a long name or a pax header. */
const MAX_EXTRA_BYTES = 64 * 1024;

const decoder = new TextDecoder("utf-8");

export const readTar = async (source: Source): Promise<ArchiveEntry[]> => {
  const entries: ArchiveEntry[] = [];
  const countEntry = createSizeLimit();
  let extraHeader: ExtraHeader = {};
  let offset = 0;
  for (;;) {
    const header = await source.read(offset, BLOCK_BYTES);
    // Two empty blocks end the archive; many programs omit them.
    if (header.length === 0 || header.every((byte) => byte === 0)) break;
    if (header.length < BLOCK_BYTES || !isChecksumValid(header)) throw new ArchiveError("the tar archive is damaged");
    const kind = String.fromCharCode(header[156] as number);
    const isExtraHeader = kind === GNU_LONG_NAME || kind === PAX_HEADER;
    const size = (isExtraHeader ? undefined : extraHeader.size) ?? parseNumber(header, 124, 12);
    const start = offset + BLOCK_BYTES;
    if (start + size > source.size) throw new ArchiveError("the tar archive ends in the middle of a file");
    offset = start + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
    countEntry(size);
    if (isExtraHeader) {
      if (size > MAX_EXTRA_BYTES) throw new ArchiveError("a header of the tar archive is too long");
      const extra = await source.read(start, size);
      const fields = kind === GNU_LONG_NAME ? { path: readText(extra, 0, extra.length) } : parsePax(extra);
      extraHeader = { ...extraHeader, ...fields };
      continue;
    }
    if (kind === PAX_GLOBAL_HEADER || kind === GNU_LONG_LINK) continue;
    const name = toSafeName(extraHeader.path ?? readName(header));
    extraHeader = {};
    if (FILE_KINDS.includes(kind) && name !== undefined)
      entries.push(readEntry(source, name, start, size, parseNumber(header, 100, 8)));
  }
  return entries;
};

const readEntry = (source: Source, name: string, offset: number, size: number, mode: number): ArchiveEntry => ({
  name,
  size,
  mode: mode & 0o777,
  stored: { offset },
  async read(limit) {
    if (size > limit) throw new ArchiveError(`${name} is larger than ${limit} bytes`);
    return source.read(offset, size);
  },
});

const readText = (bytes: Uint8Array, offset: number, length: number): string => {
  const field = bytes.subarray(offset, offset + length);
  const end = field.indexOf(0);
  return decoder.decode(end < 0 ? field : field.subarray(0, end));
};

const readName = (header: Uint8Array): string => {
  const name = readText(header, 0, 100);
  const isUstar = readText(header, 257, 6) === "ustar";
  const prefix = isUstar ? readText(header, 345, 155) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
};

/** Parses octal text, or a binary number if the first bit is set. */
const parseNumber = (bytes: Uint8Array, offset: number, length: number): number => {
  if (((bytes[offset] as number) & 0x80) !== 0) {
    let value = (bytes[offset] as number) & 0x7f;
    for (let i = 1; i < length; i++) value = value * 256 + (bytes[offset + i] as number);
    if (!Number.isSafeInteger(value)) throw new ArchiveError("the tar archive is damaged");
    return value;
  }
  const text = readText(bytes, offset, length).trim();
  if (!/^[0-7]*$/.test(text)) throw new ArchiveError("the tar archive is damaged");
  return text === "" ? 0 : Number.parseInt(text, 8);
};

const isChecksumValid = (header: Uint8Array): boolean => {
  let sum = 0;
  for (let i = 0; i < BLOCK_BYTES; i++) sum += i >= 148 && i < 156 ? 32 : (header[i] as number);
  return sum === parseNumber(header, 148, 8);
};

/** Fields for the next entry, which replace those of its own header. */
type ExtraHeader = { path?: string; size?: number };

/** Parses records of the form `<length> <key>=<value>\n`. */
const parsePax = (bytes: Uint8Array): ExtraHeader => {
  const fields: ExtraHeader = {};
  for (let recordStart = 0; recordStart < bytes.length; ) {
    const space = bytes.indexOf(32, recordStart);
    const length = space < 0 ? Number.NaN : Number(decoder.decode(bytes.subarray(recordStart, space)));
    if (!Number.isInteger(length) || length <= space - recordStart || recordStart + length > bytes.length) {
      throw new ArchiveError("a header of the tar archive is damaged");
    }
    const record = decoder.decode(bytes.subarray(space + 1, recordStart + length - 1));
    const equals = record.indexOf("=");
    const value = record.slice(equals + 1);
    if (record.slice(0, equals) === "path") fields.path = value;
    if (record.slice(0, equals) === "size") {
      fields.size = Number(value);
      if (!Number.isSafeInteger(fields.size) || fields.size < 0) throw new ArchiveError("the tar archive is damaged");
    }
    recordStart += length;
  }
  return fields;
};
