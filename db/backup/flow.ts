// Copies bytes at a bounded speed and flushes them as it goes, so that neither the disk's queue nor a flush at the end holds up
// the server that works alongside it. Used for backups and restores.
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

/** What is read and written immediately. */
export const PIECE_BYTES = 256 * 1024;
/**
 * The server's own flushes wait behind one of these. Measured alongside a loop that writes 32 KiB and flushes (p99 0.8 ms alone): with 2 MiB
 * 2.6 ms, with 512 KiB, which are more flushes, 3.9 ms, with 8 MiB 7 ms.
 */
const FLUSH_BYTES = 8 * PIECE_BYTES;
/** What reading costs alongside writing. */
const LOOK_SHARE = 1 / 8;

const ALL = Number.MAX_SAFE_INTEGER;

/** `at` counts from where the reading began. */
type Use = (piece: Uint8Array, at: number) => Promise<void> | void;

/** Which bytes of a file, and what each of them counts alongside one that is written. */
type Part = { start?: number; limit?: number; share?: number };

export type Copied = { bytes: number; sha256: string };

export class Flow {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal;
  readonly #buffer = new Uint8Array(PIECE_BYTES);
  #began: number;
  #moved = 0;
  #total = 0;
  readonly #onProgress: ((bytes: number) => void) | undefined;

  /** `rateMb` in MiB a second; 0 for as fast as it goes. An abort of `signal` ends what is under way with its reason. `told` hears how many bytes were read so far. */
  constructor(clock: Clock, rateMb: number, signal: AbortSignal, onProgress?: (bytes: number) => void) {
    this.#onProgress = onProgress;
    this.#clock = clock;
    this.#bytesPerMs = (rateMb * 1024 * 1024) / 1000;
    this.#signal = signal;
    this.#began = clock.monotonic();
  }

  /** Waits until so many bytes more fit the speed. Throws when it was told to stop. */
  async pass(bytes: number): Promise<void> {
    this.#signal.throwIfAborted();
    this.#moved += bytes;
    if (this.#bytesPerMs === 0) return;
    const ahead = this.#moved / this.#bytesPerMs - (this.#clock.monotonic() - this.#began);
    if (ahead > 1) await pause(this.#clock, ahead);
    // What was slower than allowed, such as a busy disk, is not made up for later.
    else if (ahead < -1000) this.#restart();
  }

  #restart(): void {
    this.#began = this.#clock.monotonic();
    this.#moved = 0;
  }

  /** Calls `use` with each piece of an open file; the piece is overwritten by the next one. Answers how many bytes there were. */
  async read(from: FileHandle, use: Use, { start = 0, limit = ALL, share = 1 }: Part = {}): Promise<number> {
    let read = 0;
    while (read < limit) {
      const bytesRead = await readAt(from, this.#buffer.subarray(0, Math.min(PIECE_BYTES, limit - read)), start + read);
      if (bytesRead === 0) break;
      await use(this.#buffer.subarray(0, bytesRead), read);
      read += bytesRead;
      this.#total += bytesRead;
      this.#onProgress?.(this.#total);
      await this.pass(bytesRead * share);
    }
    return read;
  }

  /** Reads a whole file of which little or nothing is copied: so much faster, or `hurried`, as fast as it goes. */
  look(from: FileHandle, use: Use, { hurried = false } = {}): Promise<number> {
    return this.read(from, use, { share: hurried ? 0 : LOOK_SHARE });
  }

  /** A writer that flushes as it goes; the rest at the end is the caller's to flush. */
  flushing(to: FileHandle): (piece: Uint8Array, at?: number) => Promise<void> {
    let unflushed = 0;
    return async (piece, at) => {
      await writeAll(to, piece, at);
      unflushed += piece.byteLength;
      if (unflushed < FLUSH_BYTES) return;
      await to.datasync();
      unflushed = 0;
    };
  }

  /** Copies an open file, or a part of it, to a new file of mode 0600, flushed. */
  async copy(from: FileHandle, to: string, part: Part = {}): Promise<Copied> {
    await using file = await open(to, "wx", 0o600);
    const hasher = new Bun.CryptoHasher("sha256");
    const write = this.flushing(file);
    const copyPiece = (piece: Uint8Array): Promise<void> => {
      hasher.update(piece);
      return write(piece);
    };
    const bytes = await this.read(from, copyPiece, part);
    await file.sync();
    return { bytes, sha256: hasher.digest("hex") };
  }

  async copyFile(from: string, to: string): Promise<Copied> {
    await using file = await open(from, "r");
    // Awaited, or the file would be closed first.
    return await this.copy(file, to);
  }

  /** Size and checksum of a file. */
  async hash(path: string): Promise<Copied> {
    await using file = await open(path, "r");
    const hasher = new Bun.CryptoHasher("sha256");
    const bytes = await this.look(file, (piece) => void hasher.update(piece));
    return { bytes, sha256: hasher.digest("hex") };
  }
}

/** Fills `into` from a place in the file; answers how much there was. A single read may give less than is asked for. */
export const readAt = async (file: FileHandle, into: Uint8Array, at: number): Promise<number> => {
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(into, filled, into.byteLength - filled, at + filled);
    filled += bytesRead;
    if (bytesRead === 0 || filled === into.byteLength) return filled;
  }
};

/** Writes all of it: at a place in the file, or behind what was written last. */
export const writeAll = async (file: FileHandle, bytes: Uint8Array, position?: number): Promise<void> => {
  for (let done = 0; done < bytes.byteLength; ) {
    const place = position === undefined ? null : position + done;
    done += (await file.write(bytes, done, bytes.byteLength - done, place)).bytesWritten;
  }
};

/** Flushes the names in a folder. */
export const flushFolder = async (path: string): Promise<void> => {
  await using folder = await open(path, "r");
  await folder.sync();
};

/** Flushes the name of a file. */
export const flushName = (path: string): Promise<void> => flushFolder(dirname(path));
