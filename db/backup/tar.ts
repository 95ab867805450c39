// Backups as .tar files: plain ustar, with sizes above 8 GiB in GNU's base-256 form, so that any tar program can read them. The manifest
// comes first. Reading rejects truncated files; the caller validates names.
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type Flow, writeAll } from "./flow.ts";
import { BackupError } from "./manifest.ts";

const BLOCK_BYTES = 512;
const MAX_OCTAL_SIZE = 8 ** 11;

/** Writes these files of a folder into a new tar file and flushes it. */
export const packTar = async (folder: string, names: readonly string[], to: string, flow: Flow): Promise<void> => {
  await using tar = await open(to, "wx", 0o600);
  for (const name of names) {
    await using file = await open(join(folder, name), "r");
    const { size } = await file.stat();
    await writeAll(tar, createHeader(name, size));
    const write = flow.flushing(tar);
    const read = await flow.read(file, (piece) => write(piece), { limit: size });
    if (read !== size) throw new BackupError(`${name} has changed while it was packed`);
    await writeAll(tar, new Uint8Array(countPadding(size)));
    await tar.datasync();
  }
  await writeAll(tar, new Uint8Array(2 * BLOCK_BYTES));
  await tar.sync();
};

const countPadding = (size: number): number => (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;

const createHeader = (name: string, size: number): Uint8Array => {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name, 0, 100, "latin1");
  block.write("0000600\0", 100, "latin1");
  block.write("0000000\0", 108, "latin1");
  block.write("0000000\0", 116, "latin1");
  if (size < MAX_OCTAL_SIZE) block.write(`${size.toString(8).padStart(11, "0")}\0`, 124, "latin1");
  else {
    block[124] = 0x80;
    block.writeBigUInt64BE(BigInt(size), 128);
  }
  block.write("00000000000\0", 136, "latin1");
  block.write("        ", 148, "latin1");
  block.write("0", 156, "latin1");
  block.write("ustar\0" + "00", 257, "latin1");
  block.write(`${computeChecksum(block).toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
};

const computeChecksum = (block: Uint8Array): number =>
  block.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 32 : byte), 0);

export type Entry = { name: string; at: number; size: number };

/** Lists the entries of a tar with their offsets and sizes. Throws `BackupError` for a truncated or invalid file. */
export const listTarEntries = async (file: FileHandle, source: string): Promise<Entry[]> => {
  const entries: Entry[] = [];
  const { size: end } = await file.stat();
  const block = Buffer.alloc(BLOCK_BYTES);
  for (let offset = 0; ; ) {
    const { bytesRead } = await file.read(block, 0, BLOCK_BYTES, offset);
    if (bytesRead < BLOCK_BYTES) throw new BackupError(`${source} is cut off`);
    if (block.every((byte) => byte === 0)) return entries;
    if (Number.parseInt(readText(block, 148, 8), 8) !== computeChecksum(block))
      throw new BackupError(`${source} is damaged, or no tar`);
    const size =
      block[124] === 0x80 ? Number(block.readBigUInt64BE(128)) : Number.parseInt(readText(block, 124, 12), 8);
    if (!(size >= 0 && offset + BLOCK_BYTES + size <= end)) throw new BackupError(`${source} is cut off`);
    entries.push({ name: readText(block, 0, 100), at: offset + BLOCK_BYTES, size });
    offset += BLOCK_BYTES + size + countPadding(size);
  }
};

const readText = (block: Buffer, offset: number, length: number): string => {
  const field = block.toString("latin1", offset, offset + length);
  const nul = field.indexOf("\0");
  return (nul < 0 ? field : field.slice(0, nul)).trim();
};
