// Reassembles received data: readable bytes, and pieces after a gap. All of it counts toward one limit, including the overhead of each
// piece, so that a peer that sends many tiny segments uses no more memory than others. [TL-23] [TL-25]
import { MAX_SACK_BLOCKS, type SackBlock } from "../packets/segment.ts";
import { addSeq, diff } from "./sequence.ts";

/** Estimated overhead of a piece. */
const PIECE_BYTES = 128;
/** Maximum size of a chunk for the reader. */
const MAX_CHUNK = 64 * 1024;

const SLACK = 1.25;

type Piece = { readonly seq: number; readonly data: Uint8Array };

/** The position of a segment: the next bytes, bytes after a gap, or nothing new. */
export type Placement = "next" | "ahead" | "old";

export class Reassembly {
  /** The next expected sequence number. */
  expected = 0;
  /** The peer has closed its side, and everything before has arrived. */
  hasEnded = false;
  #chunks: Uint8Array[] = [];
  /** Sorted by sequence number. Pieces may overlap. */
  #ahead: Piece[] = [];
  #latest = 0;
  #finAt: number | undefined;
  /** Readable bytes, and bytes after gaps including overhead. */
  #unread = 0;
  #waiting = 0;

  /** Number of buffered bytes, including overhead. */
  get held(): number {
    return this.#unread + this.#waiting;
  }

  /** Returns how many more bytes may arrive, with at most `limit` unread. */
  getWindow(limit: number): number {
    return Math.max(0, limit - this.#unread);
  }

  /** Takes a segment's bytes. Bytes far beyond a window of `limit` bytes are dropped. */
  push(seq: number, data: Uint8Array, isFin: boolean, limit: number): Placement {
    const old = diff(this.expected, seq);
    if (isFin && (this.#finAt === undefined || old <= 0)) this.#finAt = addSeq(seq, data.byteLength);
    if (old < 0) return this.#buffer({ seq, data }, limit);
    const fresh = data.subarray(Math.min(old, data.byteLength));
    const before = this.expected;
    // The announced window did not include the overhead, so slightly more is accepted.
    if (fresh.byteLength > 0 && this.#unread + fresh.byteLength <= limit * SLACK) this.#deliver(fresh);
    this.#join();
    if (this.#finAt === this.expected && !this.hasEnded) {
      this.expected = addSeq(this.expected, 1);
      this.hasEnded = true;
    }
    return this.expected === before ? "old" : "next";
  }

  get hasAhead(): boolean {
    return this.#ahead.length > 0;
  }

  /** Returns the blocks received after gaps, the most recently extended first (RFC 2018 4). */
  blocks(): SackBlock[] {
    const blocks: { from: number; to: number }[] = [];
    for (const { seq, data } of this.#ahead) {
      const last = blocks.at(-1);
      const end = addSeq(seq, data.byteLength);
      if (last && diff(seq, last.to) <= 0) {
        if (diff(end, last.to) > 0) last.to = end;
      } else blocks.push({ from: seq, to: end });
    }
    const at = blocks.findIndex(({ from, to }) => diff(this.#latest, from) >= 0 && diff(this.#latest, to) < 0);
    if (at > 0) blocks.unshift(...blocks.splice(at, 1));
    return blocks.slice(0, MAX_SACK_BLOCKS);
  }

  /** Returns the readable bytes, joined; undefined if none exist. */
  read(): Uint8Array | undefined {
    let [count, bytes] = [0, 0];
    for (const chunk of this.#chunks) {
      if (count > 0 && bytes + chunk.byteLength > MAX_CHUNK) break;
      count += 1;
      bytes += chunk.byteLength;
    }
    if (count === 0) return undefined;
    const taken = this.#chunks.splice(0, count);
    this.#unread -= bytes + count * PIECE_BYTES;
    return count === 1 ? taken[0] : Buffer.concat(taken, bytes);
  }

  clear(): void {
    this.#chunks = [];
    this.#ahead = [];
    this.#unread = 0;
    this.#waiting = 0;
  }

  #buffer(piece: Piece, limit: number): Placement {
    const { seq, data } = piece;
    const cost = data.byteLength + PIECE_BYTES;
    const reach = diff(addSeq(seq, data.byteLength), this.expected);
    if (data.byteLength === 0 || reach > limit * SLACK - this.#unread || this.#waiting + cost > limit * SLACK)
      return "old";
    let at = this.#ahead.length;
    while (at > 0 && diff((this.#ahead[at - 1] as Piece).seq, seq) > 0) at -= 1;
    const before = this.#ahead[at - 1];
    this.#latest = seq;
    if (before && diff(addSeq(before.seq, before.data.byteLength), addSeq(seq, data.byteLength)) >= 0) return "ahead";
    this.#ahead.splice(at, 0, piece);
    this.#waiting += cost;
    return "ahead";
  }

  #join(): void {
    let used = 0;
    for (const { seq, data } of this.#ahead) {
      const old = diff(this.expected, seq);
      if (old < 0) break;
      used += 1;
      this.#waiting -= data.byteLength + PIECE_BYTES;
      if (old < data.byteLength) this.#deliver(data.subarray(old));
    }
    if (used > 0) this.#ahead.splice(0, used);
  }

  #deliver(data: Uint8Array): void {
    this.expected = addSeq(this.expected, data.byteLength);
    this.#unread += data.byteLength + PIECE_BYTES;
    this.#chunks.push(data);
  }
}
