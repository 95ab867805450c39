// Reassembles received data: readable bytes, and pieces after a gap. Both count toward one limit, together with an overhead for each piece,
// so that a peer that sends many tiny segments uses no more memory than others. [TL-23] [TL-25]
import { MAX_SACK_BLOCKS, type SackBlock } from "../packets/segment.ts";
import { addSeq, diff } from "./sequence.ts";

/** Estimated memory of a piece in addition to its data. */
const PIECE_OVERHEAD_BYTES = 128;
/** Maximum size of a chunk for the reader. */
const MAX_CHUNK_BYTES = 64 * 1024;

/** Data may exceed the limit by this factor, because the announced window does not include the overhead. */
const SLACK = 1.25;

type Piece = { readonly seq: number; readonly data: Uint8Array };

/** The position of a segment. `next`: the next expected bytes. `ahead`: bytes after a gap. `old`: no new bytes. */
export type Placement = "next" | "ahead" | "old";

export class Reassembly {
  /** The next expected sequence number. */
  expected = 0;
  /** The peer has closed its side, and all its data has arrived. */
  hasEnded = false;
  #chunks: Uint8Array[] = [];
  /** Sorted by sequence number. Pieces may overlap. */
  #ahead: Piece[] = [];
  /** The sequence number of the newest piece after a gap. */
  #latestAhead = 0;
  #finSeq: number | undefined;
  /** Bytes that can be read, with overhead. */
  #unreadBytes = 0;
  /** Bytes after gaps, with overhead. */
  #aheadBytes = 0;

  /** Number of buffered bytes, including overhead. */
  get held(): number {
    return this.#unreadBytes + this.#aheadBytes;
  }

  /** Returns how many more bytes the peer may send if at most `limit` may be unread. */
  getWindow(limit: number): number {
    return Math.max(0, limit - this.#unreadBytes);
  }

  /** Takes a segment's bytes. Bytes far beyond a window of `limit` bytes are dropped. */
  push(seq: number, data: Uint8Array, isFin: boolean, limit: number): Placement {
    const oldBytes = diff(this.expected, seq);
    if (isFin && (this.#finSeq === undefined || oldBytes <= 0)) this.#finSeq = addSeq(seq, data.byteLength);
    if (oldBytes < 0) return this.#storeAhead({ seq, data }, limit);
    const newData = data.subarray(Math.min(oldBytes, data.byteLength));
    const before = this.expected;
    if (newData.byteLength > 0 && this.#unreadBytes + newData.byteLength <= limit * SLACK) this.#deliver(newData);
    this.#deliverAhead();
    if (this.#finSeq === this.expected && !this.hasEnded) {
      this.expected = addSeq(this.expected, 1);
      this.hasEnded = true;
    }
    return this.expected === before ? "old" : "next";
  }

  get hasAhead(): boolean {
    return this.#ahead.length > 0;
  }

  /** Returns the blocks after gaps, with the most recently extended one first (RFC 2018 4). */
  blocks(): SackBlock[] {
    const blocks: { from: number; to: number }[] = [];
    for (const { seq, data } of this.#ahead) {
      const last = blocks.at(-1);
      const end = addSeq(seq, data.byteLength);
      if (last && diff(seq, last.to) <= 0) {
        if (diff(end, last.to) > 0) last.to = end;
      } else blocks.push({ from: seq, to: end });
    }
    const at = blocks.findIndex(
      ({ from, to }) => diff(this.#latestAhead, from) >= 0 && diff(this.#latestAhead, to) < 0,
    );
    if (at > 0) blocks.unshift(...blocks.splice(at, 1));
    return blocks.slice(0, MAX_SACK_BLOCKS);
  }

  /** Returns the next readable bytes in one chunk; undefined if nothing is readable. */
  read(): Uint8Array | undefined {
    let [count, bytes] = [0, 0];
    for (const chunk of this.#chunks) {
      if (count > 0 && bytes + chunk.byteLength > MAX_CHUNK_BYTES) break;
      count += 1;
      bytes += chunk.byteLength;
    }
    if (count === 0) return undefined;
    const taken = this.#chunks.splice(0, count);
    this.#unreadBytes -= bytes + count * PIECE_OVERHEAD_BYTES;
    return count === 1 ? taken[0] : Buffer.concat(taken, bytes);
  }

  clear(): void {
    this.#chunks = [];
    this.#ahead = [];
    this.#unreadBytes = 0;
    this.#aheadBytes = 0;
  }

  #storeAhead(piece: Piece, limit: number): Placement {
    const { seq, data } = piece;
    const cost = data.byteLength + PIECE_OVERHEAD_BYTES;
    const reach = diff(addSeq(seq, data.byteLength), this.expected);
    if (data.byteLength === 0 || reach > limit * SLACK - this.#unreadBytes || this.#aheadBytes + cost > limit * SLACK)
      return "old";
    let at = this.#ahead.length;
    while (at > 0 && diff((this.#ahead[at - 1] as Piece).seq, seq) > 0) at -= 1;
    const before = this.#ahead[at - 1];
    this.#latestAhead = seq;
    if (before && diff(addSeq(before.seq, before.data.byteLength), addSeq(seq, data.byteLength)) >= 0) return "ahead";
    this.#ahead.splice(at, 0, piece);
    this.#aheadBytes += cost;
    return "ahead";
  }

  #deliverAhead(): void {
    let used = 0;
    for (const { seq, data } of this.#ahead) {
      const oldBytes = diff(this.expected, seq);
      if (oldBytes < 0) break;
      used += 1;
      this.#aheadBytes -= data.byteLength + PIECE_OVERHEAD_BYTES;
      if (oldBytes < data.byteLength) this.#deliver(data.subarray(oldBytes));
    }
    if (used > 0) this.#ahead.splice(0, used);
  }

  #deliver(data: Uint8Array): void {
    this.expected = addSeq(this.expected, data.byteLength);
    this.#unreadBytes += data.byteLength + PIECE_OVERHEAD_BYTES;
    this.#chunks.push(data);
  }
}
