// Copies bytes at a bounded speed and flushes them as it goes, so that neither the disk's queue nor a flush at the end holds up
// the server that works beside it. Used for backups and restores.
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, sleep } from "#base/clock.ts";

const CHUNK_BYTES = 1024 * 1024;
/** A flush of more than this at once would be felt by the server's own flushes. */
const FLUSH_BYTES = 8 * CHUNK_BYTES;

export type Copied = { bytes: number; sha256: string };

export class Flow {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal;
  readonly #buffer = new Uint8Array(CHUNK_BYTES);
  #began: number;
  #moved = 0;

  /** `rateMb` in MiB a second; 0 for as fast as it goes. An abort of `signal` ends what is under way with its reason. */
  constructor(clock: Clock, rateMb: number, signal: AbortSignal) {
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
    if (ahead > 1) await sleep(this.#clock, ahead);
    // What was slower than allowed, such as a busy disk, is not made up for later.
    else if (ahead < -1000) this.#restart();
  }

  #restart(): void {
    this.#began = this.#clock.monotonic();
    this.#moved = 0;
  }

  /**
   * Calls `use` with each piece of `limit` bytes of an open file, from `start` on; the piece is overwritten by the next one. Answers
   * how many bytes there were.
   */
  async read(
    from: FileHandle,
    limit: number,
    use: (piece: Uint8Array) => Promise<void> | void,
    start = 0,
  ): Promise<number> {
    let read = 0;
    while (read < limit) {
      const { bytesRead } = await from.read(this.#buffer, 0, Math.min(CHUNK_BYTES, limit - read), start + read);
      if (bytesRead === 0) break;
      await use(this.#buffer.subarray(0, bytesRead));
      read += bytesRead;
      await this.pass(bytesRead);
    }
    return read;
  }

  /** Copies `limit` bytes of an open file, from `start` on, to a new file of mode 0600, flushed. */
  async copy(from: FileHandle, to: string, limit = Number.MAX_SAFE_INTEGER, start = 0): Promise<Copied> {
    await using file = await open(to, "wx", 0o600);
    const hasher = new Bun.CryptoHasher("sha256");
    let unflushed = 0;
    const write = async (piece: Uint8Array): Promise<void> => {
      hasher.update(piece);
      await writeAll(file, piece);
      unflushed += piece.byteLength;
      if (unflushed < FLUSH_BYTES) return;
      await file.datasync();
      unflushed = 0;
    };
    const bytes = await this.read(from, limit, write, start);
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
    const bytes = await this.read(file, Number.MAX_SAFE_INTEGER, (piece) => void hasher.update(piece));
    return { bytes, sha256: hasher.digest("hex") };
  }
}

export const writeAll = async (file: FileHandle, bytes: Uint8Array): Promise<void> => {
  for (let at = 0; at < bytes.byteLength; ) at += (await file.write(bytes, at)).bytesWritten;
};

/** Flushes the names in a folder. */
export const flushFolder = async (path: string): Promise<void> => {
  await using folder = await open(path, "r");
  await folder.sync();
};

/** Flushes the name of a file. */
export const flushName = (path: string): Promise<void> => flushFolder(dirname(path));
