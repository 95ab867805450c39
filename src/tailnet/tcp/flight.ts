// Sent and unacknowledged segments, oldest first, and loss detection. A segment is lost if three later transmissions have overtaken it (as
// in RFC 6675 and RFC 8985), which also detects lost retransmissions. [TL-25]
import type { SackBlock } from "../packets/segment.ts";
import { addSeq, diff } from "./sequence.ts";

const REORDERING_THRESHOLD = 3;

export type SentSegment = {
  readonly seq: number;
  /** Sequence numbers it occupies: its bytes, and one for SYN or FIN. */
  readonly length: number;
  readonly flags: number;
  readonly data: Uint8Array | undefined;
  /** Time and sequence number of its last transmission. */
  at: number;
  order: number;
  isAgain: boolean;
  state: "sent" | "arrived" | "lost";
};

/**
 * Newly arrived data: its size, and the send time of the newest segment that was sent only once. `earliest`: segments sent after this time
 * cannot have arrived yet.
 */
export type ArrivedData = { bytes: number; sentAt: number | undefined; readonly earliest: number };

export class Flight {
  #list: SentSegment[] = [];
  #first = 0;
  #orders = 0;
  /** The latest transmission known to have arrived. */
  #arrived = -1;
  #lost = 0;
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
    this.#list.push({ ...segment, order: this.#orders++, isAgain: false, state: "sent" });
    this.bytes += segment.length;
  }

  /** Marks everything before `ack` as arrived. Adds to `arrived`. */
  acknowledge(ack: number, arrived: ArrivedData): void {
    while (this.#first < this.#list.length) {
      const one = this.#list[this.#first] as SentSegment;
      if (diff(addSeq(one.seq, one.length), ack) > 0) break;
      this.#markArrived(one, arrived);
      this.#list[this.#first] = NO_SEGMENT;
      this.#first += 1;
    }
    if (this.#first > 256 && this.#first * 2 > this.#list.length) {
      this.#list = this.#list.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Marks these blocks beyond the acknowledgment as arrived. Adds to `arrived`. */
  acknowledgeBlocks(blocks: readonly SackBlock[], arrived: ArrivedData): void {
    for (const { from, to } of blocks) {
      for (let i = this.#indexOf(from); i < this.#list.length; i += 1) {
        const one = this.#list[i] as SentSegment;
        if (diff(addSeq(one.seq, one.length), to) > 0) break;
        this.#markArrived(one, arrived);
      }
    }
  }

  /** Detects lost segments. Returns their size. */
  findLost(): number {
    let bytes = 0;
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as SentSegment;
      // Later segments that were sent only once also have a later order.
      if (one.order + REORDERING_THRESHOLD > this.#arrived && !one.isAgain) break;
      if (one.state === "sent" && one.order + REORDERING_THRESHOLD <= this.#arrived) bytes += this.#markLost(one);
    }
    return bytes;
  }

  /** Marks the oldest segment as lost, for peers that do not report blocks. */
  markOldestLost(): number {
    const { oldest } = this;
    return oldest?.state === "sent" ? this.#markLost(oldest) : 0;
  }

  /** Marks all segments that have not arrived as lost. */
  markAllLost(): void {
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as SentSegment;
      if (one.state === "sent") this.#markLost(one);
    }
  }

  /** Returns the oldest lost segment. */
  findOldestLost(): SentSegment | undefined {
    if (this.#lost === 0) return undefined;
    for (let i = this.#first; i < this.#list.length; i += 1) if (this.#list[i]?.state === "lost") return this.#list[i];
    return undefined;
  }

  /** Marks a segment as retransmitted. */
  markResent(one: SentSegment, at: number): void {
    if (one.state === "lost") {
      this.#lost -= 1;
      this.bytes += one.length;
    }
    one.state = "sent";
    one.isAgain = true;
    one.at = at;
    one.order = this.#orders++;
  }

  clear(): void {
    this.#list = [];
    this.#first = 0;
    this.#lost = 0;
    this.bytes = 0;
  }

  #markArrived(one: SentSegment, arrived: ArrivedData): void {
    if (one.state === "arrived") return;
    if (one.state === "lost") this.#lost -= 1;
    else this.bytes -= one.length;
    one.state = "arrived";
    // For a retransmitted segment, the first copy may have arrived, which says nothing about segments sent before the second.
    if (!one.isAgain || one.at <= arrived.earliest) this.#arrived = Math.max(this.#arrived, one.order);
    arrived.bytes += one.length;
    if (!one.isAgain) arrived.sentAt = Math.max(arrived.sentAt ?? 0, one.at);
  }

  #markLost(one: SentSegment): number {
    one.state = "lost";
    this.#lost += 1;
    this.bytes -= one.length;
    return one.length;
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
  isAgain: false,
  state: "arrived",
};
