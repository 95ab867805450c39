// A copy of a file that changes while it is copied, and is repaired later by reading both files again and writing only the differences.
// Used for the database (see snapshot.ts for the reason).
import { type FileHandle, open } from "node:fs/promises";
import { type Flow, PIECE_BYTES, readAt } from "./flow.ts";

export class Draft {
  readonly #file: FileHandle;
  readonly #own = new Uint8Array(PIECE_BYTES);

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
   * Makes the copy identical to the file, which must not change during the call, and flushes it. Reads the whole file, at full speed if
   * `hurried`, for when someone is blocked. Can be called repeatedly.
   */
  async repair(from: FileHandle, flow: Flow, pace: { hurried?: boolean } = {}): Promise<void> {
    const write = flow.flushing(this.#file);
    const writeIfChanged = async (piece: Uint8Array, at: number): Promise<void> => {
      if (await this.#has(piece, at)) return;
      await write(piece, at);
      await flow.pass(piece.byteLength);
    };
    const bytes = await flow.compare(from, writeIfChanged, pace);
    await this.#file.truncate(bytes);
    await this.#file.sync();
  }

  /** Compares bytes, because computing checksums takes several times as long. */
  async #has(piece: Uint8Array, at: number): Promise<boolean> {
    const own = this.#own.subarray(0, piece.byteLength);
    return (await readAt(this.#file, own, at)) === piece.byteLength && Buffer.compare(own, piece) === 0;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
