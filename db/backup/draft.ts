// A copy of a file that changes while it is copied. A later repair reads both files again and writes only the differences. Used for the
// database (see snapshot.ts for the reason).
import { type FileHandle, open } from "node:fs/promises";
import { type Flow, PIECE_BYTES, readAt } from "./flow.ts";

export class Draft {
  readonly #file: FileHandle;
  readonly #buffer = new Uint8Array(PIECE_BYTES);

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Copies an open file to a new one of mode 0600. */
  static async make(from: FileHandle, to: string, flow: Flow): Promise<Draft> {
    const draft = new Draft(await open(to, "wx+", 0o600));
    try {
      await flow.read(from, flow.flushing(draft.#file));
      await draft.#file.datasync();
      return draft;
    } catch (error) {
      await draft.close();
      throw error;
    }
  }

  /**
   * Makes the copy identical to the file, which must not change during the call, and flushes it. Reads the whole file. `isUnlimited`: reads
   * at full speed, for a repair that other work waits for. Can be called repeatedly.
   */
  async repair(from: FileHandle, flow: Flow, options: { isUnlimited?: boolean } = {}): Promise<void> {
    const write = flow.flushing(this.#file);
    const writeIfChanged = async (chunk: Uint8Array, offset: number): Promise<void> => {
      if (await this.#isEqual(chunk, offset)) return;
      await write(chunk, offset);
      await flow.throttle(chunk.byteLength);
    };
    const bytes = await flow.compare(from, writeIfChanged, options);
    await this.#file.truncate(bytes);
    await this.#file.sync();
  }

  /** Compares bytes, because computing checksums takes several times as long. */
  async #isEqual(chunk: Uint8Array, offset: number): Promise<boolean> {
    const copied = this.#buffer.subarray(0, chunk.byteLength);
    return (await readAt(this.#file, copied, offset)) === chunk.byteLength && Buffer.compare(copied, chunk) === 0;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
