// Sent and unacknowledged segments, oldest first, and loss detection. A segment is lost if three later transmissions have overtaken it (as
// in RFC 6675 and RFC 8985), which also detects lost retransmissions. [TL-25]
import type { Block } from "../packets/segment.ts";
import { diff, plus } from "./sequence.ts";

const REORDERING = 3;

export type Sent = {
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
export type Arrived = { bytes: number; sentAt: number | undefined; readonly earliest: number };

export class Flight {
  #list: Sent[] = [];
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

  get oldest(): Sent | undefined {
    return this.#list[this.#first];
  }

  /** The newest segment that has not arrived. */
  get newest(): Sent | undefined {
    for (let i = this.#list.length - 1; i >= this.#first; i -= 1)
      if (this.#list[i]?.state === "sent") return this.#list[i];
    return undefined;
  }

  add(segment: Pick<Sent, "seq" | "length" | "flags" | "data" | "at">): void {
    this.#list.push({ ...segment, order: this.#orders++, isAgain: false, state: "sent" });
    this.bytes += segment.length;
  }

  /** Marks everything before `ack` as arrived. Adds to `arrived`. */
  acknowledge(ack: number, arrived: Arrived): void {
    while (this.#first < this.#list.length) {
      const one = this.#list[this.#first] as Sent;
      if (diff(plus(one.seq, one.length), ack) > 0) break;
      this.#arrive(one, arrived);
      this.#list[this.#first] = NOTHING;
      this.#first += 1;
    }
    if (this.#first > 256 && this.#first * 2 > this.#list.length) {
      this.#list = this.#list.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Marks these blocks beyond the acknowledgment as arrived. Adds to `arrived`. */
  acknowledgeBlocks(blocks: readonly Block[], arrived: Arrived): void {
    for (const { from, to } of blocks) {
      for (let i = this.#indexOf(from); i < this.#list.length; i += 1) {
        const one = this.#list[i] as Sent;
        if (diff(plus(one.seq, one.length), to) > 0) break;
        this.#arrive(one, arrived);
      }
    }
  }

  /** Detects lost segments. Returns their size. */
  findLost(): number {
    let bytes = 0;
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as Sent;
      // Later segments that were sent only once also have a later order.
      if (one.order + REORDERING > this.#arrived && !one.isAgain) break;
      if (one.state === "sent" && one.order + REORDERING <= this.#arrived) bytes += this.#lose(one);
    }
    return bytes;
  }

  /** Marks the oldest segment as lost, for peers that do not report blocks. */
  loseOldest(): number {
    const { oldest } = this;
    return oldest?.state === "sent" ? this.#lose(oldest) : 0;
  }

  /** Marks all segments that have not arrived as lost. */
  loseAll(): void {
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as Sent;
      if (one.state === "sent") this.#lose(one);
    }
  }

  /** Returns the oldest lost segment. */
  nextLost(): Sent | undefined {
    if (this.#lost === 0) return undefined;
    for (let i = this.#first; i < this.#list.length; i += 1) if (this.#list[i]?.state === "lost") return this.#list[i];
    return undefined;
  }

  /** Marks a segment as retransmitted. */
  resent(one: Sent, at: number): void {
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

  #arrive(one: Sent, arrived: Arrived): void {
    if (one.state === "arrived") return;
    if (one.state === "lost") this.#lost -= 1;
    else this.bytes -= one.length;
    one.state = "arrived";
    // For a retransmitted segment, the first copy may have arrived, which says nothing about segments sent before the second.
    if (!one.isAgain || one.at <= arrived.earliest) this.#arrived = Math.max(this.#arrived, one.order);
    arrived.bytes += one.length;
    if (!one.isAgain) arrived.sentAt = Math.max(arrived.sentAt ?? 0, one.at);
  }

  #lose(one: Sent): number {
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
      if (diff((this.#list[middle] as Sent).seq, seq) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const NOTHING: Sent = {
  seq: 0,
  length: 0,
  flags: 0,
  data: undefined,
  at: 0,
  order: 0,
  isAgain: false,
  state: "arrived",
};
