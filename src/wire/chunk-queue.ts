// A queue of received bytes that have not been read. Large chunks are kept as views, small ones are joined in blocks, so that memory use
// stays within about twice the unread bytes, however the peer splits them. [WI-6]

const MIN_VIEW_BYTES = 4096;
const BLOCK_BYTES = 16 * 1024;

/**
 * Returns the view itself if it fills at least half of its buffer, and otherwise a copy, so that long-lived data does not retain a much
 * larger buffer.
 */
export const copySmallView = (view: Uint8Array): Uint8Array =>
  view.byteLength * 2 >= view.buffer.byteLength ? view : view.slice();

export class ChunkQueue {
  #chunks: Uint8Array[] = [];
  /** Free space after the last chunk; set only if that chunk is in a block of this queue. */
  #freeBlock: Uint8Array | undefined;
  #unread = 0;

  /** Number of bytes in the queue. */
  get unread(): number {
    return this.#unread;
  }

  push(piece: Uint8Array): void {
    if (piece.byteLength === 0) return;
    this.#unread += piece.byteLength;
    if (piece.byteLength >= MIN_VIEW_BYTES || this.#chunks.length === 0) {
      this.#chunks.push(copySmallView(piece));
      this.#freeBlock = undefined;
      return;
    }
    const last = this.#chunks.at(-1);
    if (last && this.#freeBlock && this.#freeBlock.byteLength >= piece.byteLength) {
      this.#freeBlock.set(piece);
      this.#freeBlock = this.#freeBlock.subarray(piece.byteLength);
      this.#chunks[this.#chunks.length - 1] = new Uint8Array(
        last.buffer,
        last.byteOffset,
        last.byteLength + piece.byteLength,
      );
      return;
    }
    const block = new Uint8Array(BLOCK_BYTES);
    block.set(piece);
    this.#chunks.push(block.subarray(0, piece.byteLength));
    this.#freeBlock = block.subarray(piece.byteLength);
  }

  /** Removes and returns the oldest chunk, which the caller then owns; undefined if the queue is empty. */
  shift(): Uint8Array | undefined {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) return undefined;
    // Bytes that were returned must never change, so their block is not written again.
    if (this.#chunks.length === 0) this.#freeBlock = undefined;
    this.#unread -= chunk.byteLength;
    return chunk;
  }

  clear(): void {
    this.#chunks = [];
    this.#freeBlock = undefined;
    this.#unread = 0;
  }
}
