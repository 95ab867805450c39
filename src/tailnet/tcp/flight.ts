// What has been sent and not yet acknowledged, oldest first, and what of it is lost. Lost is what was sent three transmissions before one that
// has arrived (as RFC 6675 and RFC 8985 have it), so also what was sent again and was lost again. [TL-25]
import type { Block } from "../packets/segment.ts";
import { diff, plus } from "./sequence.ts";

const REORDERING = 3;

export type Sent = {
  readonly seq: number;
  /** Sequence numbers it takes: bytes, and one for SYN or FIN. */
  readonly length: number;
  readonly flags: number;
  readonly data: Uint8Array | undefined;
  /** When it was last sent, and as which of all transmissions. */
  at: number;
  order: number;
  isAgain: boolean;
  state: "sent" | "arrived" | "lost";
};

/** What has newly arrived: bytes, and when the newest of what was sent once was sent. `earliest`: what was sent after it cannot be here yet. */
export type Arrived = { bytes: number; sentAt: number | undefined; readonly earliest: number };

export class Flight {
  #list: Sent[] = [];
  #first = 0;
  #orders = 0;
  /** The latest transmission known to have arrived. */
  #arrived = -1;
  #lost = 0;
  /** Bytes that are on their way as far as anyone knows. */
  bytes = 0;

  get length(): number {
    return this.#list.length - this.#first;
  }

  get oldest(): Sent | undefined {
    return this.#list[this.#first];
  }

  /** The newest that has not arrived. */
  get newest(): Sent | undefined {
    for (let i = this.#list.length - 1; i >= this.#first; i -= 1)
      if (this.#list[i]?.state === "sent") return this.#list[i];
    return undefined;
  }

  add(segment: Pick<Sent, "seq" | "length" | "flags" | "data" | "at">): void {
    this.#list.push({ ...segment, order: this.#orders++, isAgain: false, state: "sent" });
    this.bytes += segment.length;
  }

  /** Everything before `ack` has arrived. Adds to `arrived`. */
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

  /** These have arrived beyond what is acknowledged. Adds to `arrived`. */
  acknowledgeBlocks(blocks: readonly Block[], arrived: Arrived): void {
    for (const { from, to } of blocks) {
      for (let i = this.#indexOf(from); i < this.#list.length; i += 1) {
        const one = this.#list[i] as Sent;
        if (diff(plus(one.seq, one.length), to) > 0) break;
        this.#arrive(one, arrived);
      }
    }
  }

  /** Finds what is lost now. Answers how many bytes. */
  findLost(): number {
    let bytes = 0;
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as Sent;
      // Later ones that were sent once came later in order, too.
      if (one.order + REORDERING > this.#arrived && !one.isAgain) break;
      if (one.state === "sent" && one.order + REORDERING <= this.#arrived) bytes += this.#lose(one);
    }
    return bytes;
  }

  /** The oldest counts as lost: for peers that do not say what has arrived. */
  loseOldest(): number {
    const { oldest } = this;
    return oldest?.state === "sent" ? this.#lose(oldest) : 0;
  }

  /** All that has not arrived counts as lost. */
  loseAll(): void {
    for (let i = this.#first; i < this.#list.length; i += 1) {
      const one = this.#list[i] as Sent;
      if (one.state === "sent") this.#lose(one);
    }
  }

  /** The oldest that is lost. */
  nextLost(): Sent | undefined {
    if (this.#lost === 0) return undefined;
    for (let i = this.#first; i < this.#list.length; i += 1) if (this.#list[i]?.state === "lost") return this.#list[i];
    return undefined;
  }

  /** It leaves again. */
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
    // Of what was sent twice the first may have arrived: that tells nothing of what was sent before the second.
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

  /** The first segment at or behind `seq`. */
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
