// Sent and unacknowledged segments, oldest first, and loss detection. A segment counts as lost if three later transmissions have arrived
// before it (as in RFC 6675 and RFC 8985), which also detects lost retransmissions. [TL-25]
import type { SackBlock } from "../packets/segment.ts";
import { addSeq, diff } from "./sequence.ts";

const REORDERING_THRESHOLD = 3;

export type SentSegment = {
  readonly seq: number;
  /** The number of sequence numbers that it occupies: one for each byte, and one for SYN or FIN. */
  readonly length: number;
  readonly flags: number;
  readonly data: Uint8Array | undefined;
  /** The time of its last transmission. */
  at: number;
  /** The position of its last transmission in the order of all transmissions. */
  order: number;
  isRetransmitted: boolean;
  state: "sent" | "arrived" | "lost";
};

/**
 * Newly arrived data: its size, and the send time of the newest segment that was sent only once. `latestSentAt`: segments sent after this
 * time cannot have arrived yet.
 */
export type ArrivedData = { bytes: number; sentAt: number | undefined; readonly latestSentAt: number };

export class Flight {
  #list: SentSegment[] = [];
  #first = 0;
  #transmissionCount = 0;
  /** The order of the latest transmission that is known to have arrived. */
  #latestArrived = -1;
  #lostCount = 0;
  /** Estimated number of bytes in flight. */
  bytes = 0;

  get length(): number {
    return this.#list.length - this.#first;
  }

  get oldest(): SentSegment | undefined {
    return this.#list[this.#first];
  }

  /** The newest segment that has not arrived. */
  get newest(): SentSegment | undefined {
    for (let i = this.#list.length - 1; i >= this.#first; i -= 1)
      if (this.#list[i]?.state === "sent") return this.#list[i];
    return undefined;
  }

  add(segment: Pick<SentSegment, "seq" | "length" | "flags" | "data" | "at">): void {
    this.#list.push({ ...segment, order: this.#transmissionCount++, isRetransmitted: false, state: "sent" });
    this.bytes += segment.length;
  }

  /** Marks all segments before `ack` as arrived. Adds them to `arrived`. */
  acknowledge(ack: number, arrived: ArrivedData): void {
    while (this.#first < this.#list.length) {
      const segment = this.#list[this.#first] as SentSegment;
      if (diff(addSeq(segment.seq, segment.length), ack) > 0) break;
      this.#markArrived(segment, arrived);
      this.#list[this.#first] = NO_SEGMENT;
      this.#first += 1;
    }
    if (this.#first > 256 && this.#first * 2 > this.#list.length) {
      this.#list = this.#list.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Marks the segments in these blocks as arrived. Adds them to `arrived`. */
  acknowledgeBlocks(blocks: readonly SackBlock[], arrived: ArrivedData): void {
    for (const { from, to } of blocks) {
      for (let i = this.#indexOf(from); i < this.#list.length; i += 1) {
        const segment = this.#list[i] as SentSegment;
        if (diff(addSeq(segment.seq, segment.length), to) > 0) break;
        this.#markArrived(segment, arrived);
      }
    }
  }

  /** Marks lost segments. Returns their size in bytes. */
  findLost(): number {
    let bytes = 0;
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const segment = this.#list[i] as SentSegment;
      // All later segments have a later order, unless they were retransmitted.
      if (segment.order + REORDERING_THRESHOLD > this.#latestArrived && !segment.isRetransmitted) break;
      if (segment.state === "sent" && segment.order + REORDERING_THRESHOLD <= this.#latestArrived)
        bytes += this.#markLost(segment);
    }
    return bytes;
  }

  /** Marks the oldest segment as lost, for peers that do not report blocks. Returns its size in bytes. */
  markOldestLost(): number {
    const { oldest } = this;
    return oldest?.state === "sent" ? this.#markLost(oldest) : 0;
  }

  /** Marks all segments that have not arrived as lost. */
  markAllLost(): void {
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const segment = this.#list[i] as SentSegment;
      if (segment.state === "sent") this.#markLost(segment);
    }
  }

  /** Returns the oldest lost segment. */
  findOldestLost(): SentSegment | undefined {
    if (this.#lostCount === 0) return undefined;
    for (let i = this.#first; i < this.#list.length; i += 1) if (this.#list[i]?.state === "lost") return this.#list[i];
    return undefined;
  }

  /** Marks a segment as retransmitted. */
  markResent(segment: SentSegment, at: number): void {
    if (segment.state === "lost") {
      this.#lostCount -= 1;
      this.bytes += segment.length;
    }
    segment.state = "sent";
    segment.isRetransmitted = true;
    segment.at = at;
    segment.order = this.#transmissionCount++;
  }

  clear(): void {
    this.#list = [];
    this.#first = 0;
    this.#lostCount = 0;
    this.bytes = 0;
  }

  #markArrived(segment: SentSegment, arrived: ArrivedData): void {
    if (segment.state === "arrived") return;
    if (segment.state === "lost") this.#lostCount -= 1;
    else this.bytes -= segment.length;
    segment.state = "arrived";
    // If a segment was retransmitted, its first copy may be the one that arrived. Then the order of the second copy must not count.
    if (!segment.isRetransmitted || segment.at <= arrived.latestSentAt)
      this.#latestArrived = Math.max(this.#latestArrived, segment.order);
    arrived.bytes += segment.length;
    if (!segment.isRetransmitted) arrived.sentAt = Math.max(arrived.sentAt ?? 0, segment.at);
  }

  #markLost(segment: SentSegment): number {
    segment.state = "lost";
    this.#lostCount += 1;
    this.bytes -= segment.length;
    return segment.length;
  }

  /** Returns the index of the first segment at or after `seq`. */
  #indexOf(seq: number): number {
    let [low, high] = [this.#first, this.#list.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (diff((this.#list[middle] as SentSegment).seq, seq) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const NO_SEGMENT: SentSegment = {
  seq: 0,
  length: 0,
  flags: 0,
  data: undefined,
  at: 0,
  order: 0,
  isRetransmitted: false,
  state: "arrived",
};
