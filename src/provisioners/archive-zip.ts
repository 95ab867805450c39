// Reads the directory of a zip archive and inflates single entries, up to a maximum size. Does not trust the sizes in their headers.
// Rejects encrypted and zip64 archives. Used by archive.ts.
import { crc32, inflateRawSync } from "node:zlib";
import { type ArchiveEntry, ArchiveError, createSizeLimit, type Source, toSafeName } from "./archive-entry.ts";

const END_SIGNATURE = 0x06054b50;
const DIRECTORY_SIGNATURE = 0x02014b50;
const LOCAL_SIGNATURE = 0x04034b50;
/** The maximum size of the end record and the comment after it. */
const MAX_END_BYTES = 22 + 65_535;
const MAX_DIRECTORY_BYTES = 8 * 1024 * 1024;
/** Deflate compresses at most 1032 to 1, so an entry that claims a higher ratio is invalid. */
const MAX_RATIO = 1_100;

const createDamagedError = (): ArchiveError => new ArchiveError("the zip archive is damaged");

export const readZip = async (source: Source): Promise<ArchiveEntry[]> => {
  const directory = await readDirectory(source);
  const view = new DataView(directory.bytes.buffer, directory.bytes.byteOffset, directory.bytes.byteLength);
  const entries: ArchiveEntry[] = [];
  const countEntry = createSizeLimit();
  let at = 0;
  for (let i = 0; i < directory.entryCount; i++) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== DIRECTORY_SIGNATURE) throw createDamagedError();
    const nameLength = view.getUint16(at + 28, true);
    const end = at + 46 + nameLength + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (end > view.byteLength) throw createDamagedError();
    const rawName = new TextDecoder().decode(directory.bytes.subarray(at + 46, at + 46 + nameLength));
    const record: Header = {
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      packed: view.getUint32(at + 20, true),
      size: view.getUint32(at + 24, true),
      attributes: view.getUint32(at + 38, true),
      offset: view.getUint32(at + 42, true),
      unix: view.getUint8(at + 5) === 3,
    };
    countEntry(record.size);
    const name = toSafeName(rawName);
    if (name !== undefined && !rawName.endsWith("/") && isRegular(record)) entries.push(toEntry(source, name, record));
    at = end;
  }
  return entries;
};

type Header = {
  flags: number;
  method: number;
  crc: number;
  packed: number;
  size: number;
  attributes: number;
  offset: number;
  unix: boolean;
};

const S_IFMT = 0o170000;
const S_IFREG = 0o100000;

/** Returns false for links and devices, which are skipped. */
const isRegular = ({ unix, attributes }: Header): boolean => {
  const kind = (attributes >>> 16) & S_IFMT;
  return !unix || kind === 0 || kind === S_IFREG;
};

const readDirectory = async (source: Source): Promise<{ bytes: Uint8Array; entryCount: number }> => {
  const start = Math.max(0, source.size - MAX_END_BYTES);
  const tail = await source.read(start, MAX_END_BYTES);
  const view = new DataView(tail.buffer, tail.byteOffset, tail.byteLength);
  for (let at = tail.length - 22; at >= 0; at--) {
    if (view.getUint32(at, true) !== END_SIGNATURE) continue;
    const entryCount = view.getUint16(at + 10, true);
    const length = view.getUint32(at + 12, true);
    const offset = view.getUint32(at + 16, true);
    if (entryCount === 0xffff || offset === 0xffffffff) throw new ArchiveError("zip64 archives are not supported");
    if (offset + length > start + at) throw createDamagedError();
    if (length > MAX_DIRECTORY_BYTES) throw new ArchiveError("the directory of the zip archive is too long");
    return { bytes: await source.read(offset, length), entryCount };
  }
  throw new ArchiveError("the file is not a zip archive");
};

const toEntry = (source: Source, name: string, record: Header): ArchiveEntry => {
  const { flags, method, packed, size } = record;
  if ((flags & 1) !== 0) throw new ArchiveError(`${name} is encrypted`);
  if (method !== 0 && method !== 8) throw new ArchiveError(`${name} is compressed in a way that is not supported`);
  if (method === 0 && packed !== size) throw createDamagedError();
  if (size > packed * MAX_RATIO + 1024) throw new ArchiveError(`${name} claims to unpack to more than it can`);
  const mode = record.unix ? (record.attributes >>> 16) & 0o777 : 0o644;
  return {
    name,
    size,
    mode,
    async read(limit) {
      if (size > limit) throw new ArchiveError(`${name} is larger than ${limit} bytes`);
      const head = await source.read(record.offset, 30);
      const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
      if (head.length < 30 || view.getUint32(0, true) !== LOCAL_SIGNATURE) throw createDamagedError();
      const start = record.offset + 30 + view.getUint16(26, true) + view.getUint16(28, true);
      const data = await source.read(start, packed);
      if (data.length !== packed) throw createDamagedError();
      const content = method === 0 ? data : inflate(data, size, name);
      if (content.length !== size || crc32(content) !== record.crc) throw createDamagedError();
      return content;
    },
  };
};

/** Inflates at most the claimed size, so that a zip bomb cannot inflate further. */
const inflate = (data: Uint8Array, size: number, name: string): Uint8Array => {
  try {
    return inflateRawSync(data, { maxOutputLength: Math.max(1, size) });
  } catch (error) {
    const isTooLong = (error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE";
    throw new ArchiveError(isTooLong ? `${name} unpacks to more than it claims` : `${name} is damaged`);
  }
};
