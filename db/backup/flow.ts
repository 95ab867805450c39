// Copies bytes at a limited speed and flushes regularly, so that neither the disk queue nor a large final flush delays the running server.
// Used for backups and restores.
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "#base/clock.ts";
import { pause } from "#base/retry.ts";

/** Bytes read and written at a time. */
export const PIECE_BYTES = 256 * 1024;
/**
 * Bytes written between two flushes. The server's own flushes wait for one of these. A loop that writes 32 KiB and flushes takes 0.8 ms
 * alone (p99), 2.6 ms next to flushes of 2 MiB, 3.9 ms with 512 KiB because of more flushes, and 7 ms with 8 MiB.
 */
const FLUSH_BYTES = 8 * PIECE_BYTES;
/** The cost of a byte that is only read, relative to one that is also written. */
const READ_COST = 1 / 8;

const UNLIMITED = Number.MAX_SAFE_INTEGER;

/** `at` is relative to the start of the read. */
type HandlePiece = (piece: Uint8Array, at: number) => Promise<void> | void;

/** A range of a file. `cost`: how much a byte counts toward the rate limit. */
type ReadRange = { start?: number; limit?: number; cost?: number };

export type CopyResult = { bytes: number; sha256: string };

export class Flow {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal;
  readonly #buffer = new Uint8Array(PIECE_BYTES);
  #startedAt: number;
  #bytesSinceStart = 0;
  #totalRead = 0;
  readonly #onProgress: ((bytes: number) => void) | undefined;

  /**
   * `rateMb` in MiB per second; 0 for unlimited. Aborting `signal` ends a running operation with its reason. `onProgress` is called with
   * the number of bytes read so far.
   */
  constructor(clock: Clock, rateMb: number, signal: AbortSignal, onProgress?: (bytes: number) => void) {
    this.#onProgress = onProgress;
    this.#clock = clock;
    this.#bytesPerMs = (rateMb * 1024 * 1024) / 1000;
    this.#signal = signal;
    this.#startedAt = clock.monotonic();
  }

  /** Waits until the rate limit allows this many more bytes. Throws when aborted. */
  async throttle(bytes: number): Promise<void> {
    this.#signal.throwIfAborted();
    this.#bytesSinceStart += bytes;
    if (this.#bytesPerMs === 0) return;
    const aheadMs = this.#bytesSinceStart / this.#bytesPerMs - (this.#clock.monotonic() - this.#startedAt);
    if (aheadMs > 1) await pause(this.#clock, aheadMs);
    // After a delay, for example because of a busy disk, later bytes must not exceed the limit to catch up.
    else if (aheadMs < -1000) this.#restart();
  }

  #restart(): void {
    this.#startedAt = this.#clock.monotonic();
    this.#bytesSinceStart = 0;
  }

  /** Calls `onPiece` with each piece of an open file and returns the total bytes. The next piece overwrites the buffer. */
  async read(
    from: FileHandle,
    onPiece: HandlePiece,
    { start = 0, limit = UNLIMITED, cost = 1 }: ReadRange = {},
  ): Promise<number> {
    let read = 0;
    while (read < limit) {
      const bytesRead = await readAt(from, this.#buffer.subarray(0, Math.min(PIECE_BYTES, limit - read)), start + read);
      if (bytesRead === 0) break;
      await onPiece(this.#buffer.subarray(0, bytesRead), read);
      read += bytesRead;
      this.#totalRead += bytesRead;
      this.#onProgress?.(this.#totalRead);
      await this.throttle(bytesRead * cost);
    }
    return read;
  }

  /** Reads a whole file of which little or nothing is written. Faster than a copy. `isUnlimited`: reads at full speed. */
  compare(from: FileHandle, onPiece: HandlePiece, { isUnlimited = false } = {}): Promise<number> {
    return this.read(from, onPiece, { cost: isUnlimited ? 0 : READ_COST });
  }

  /** Returns a writer that flushes regularly. The caller must flush the last bytes at the end. */
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

  /** Copies an open file, or a range of it, to a new file of mode 0600, and flushes it. */
  async copy(from: FileHandle, to: string, part: ReadRange = {}): Promise<CopyResult> {
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

  async copyFile(from: string, to: string): Promise<CopyResult> {
    await using file = await open(from, "r");
    // Without `await`, the file would be closed first.
    return await this.copy(file, to);
  }

  /** Returns the size and checksum of a file. */
  async hash(path: string): Promise<CopyResult> {
    await using file = await open(path, "r");
    const hasher = new Bun.CryptoHasher("sha256");
    const bytes = await this.compare(file, (piece) => void hasher.update(piece));
    return { bytes, sha256: hasher.digest("hex") };
  }
}

/** Fills the buffer from an offset in the file, and returns the number of bytes. A single read may return less than requested. */
export const readAt = async (file: FileHandle, buffer: Uint8Array, offset: number): Promise<number> => {
  for (let filled = 0; ; ) {
    const { bytesRead } = await file.read(buffer, filled, buffer.byteLength - filled, offset + filled);
    filled += bytesRead;
    if (bytesRead === 0 || filled === buffer.byteLength) return filled;
  }
};

/** Writes all bytes, at an offset or after the last write. */
export const writeAll = async (file: FileHandle, bytes: Uint8Array, position?: number): Promise<void> => {
  for (let written = 0; written < bytes.byteLength; ) {
    const offset = position === undefined ? null : position + written;
    written += (await file.write(bytes, written, bytes.byteLength - written, offset)).bytesWritten;
  }
};

/** Flushes the directory entries of a folder. */
export const flushFolder = async (path: string): Promise<void> => {
  await using folder = await open(path, "r");
  await folder.sync();
};

/** Flushes the directory entry of a file. */
export const flushName = (path: string): Promise<void> => flushFolder(dirname(path));
