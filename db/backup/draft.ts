// A copy of a file that changes while it is copied, to be put right later: it knows a checksum of each piece it has written, so that
// mending it means to read the file again and to write only what has changed. Used for the database (snapshot.ts says why).
import { type FileHandle, open } from "node:fs/promises";
import type { Flow } from "./flow.ts";

export class Draft {
  readonly #file: FileHandle;
  /** Of the pieces that a flow reads, in their order; the last one may be shorter. */
  readonly #checksums: Buffer[] = [];

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Copies an open file to a new one of mode 0600. */
  static async make(from: FileHandle, to: string, flow: Flow): Promise<Draft> {
    const draft = new Draft(await open(to, "wx", 0o600));
    try {
      const write = flow.flushing(draft.#file);
      await flow.read(from, (piece, at) => {
        draft.#checksums.push(checksumOf(piece));
        return write(piece, at);
      });
      await draft.#file.datasync();
      return draft;
    } catch (error) {
      await draft.close();
      throw error;
    }
  }

  /** Makes it the same as the file is now, where it stands still, and flushes it. Reads all of the file; can be called again. */
  async mend(from: FileHandle, flow: Flow): Promise<void> {
    const write = flow.flushing(this.#file);
    let pieces = 0;
    const bytes = await flow.look(from, async (piece, at) => {
      const checksum = checksumOf(piece);
      const known = this.#checksums[pieces];
      this.#checksums[pieces++] = checksum;
      if (known?.equals(checksum)) return;
      await write(piece, at);
      await flow.pass(piece.byteLength);
    });
    this.#checksums.length = pieces;
    await this.#file.truncate(bytes);
    await this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

// Not a quick one: two contents of the same checksum would be a damaged backup, and people write into the database.
const checksumOf = (piece: Uint8Array): Buffer => new Bun.CryptoHasher("sha256").update(piece).digest();
