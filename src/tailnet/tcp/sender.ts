// The sending half of a connection: queueing, data in flight, retransmission (RFC 9293 3.8, RFC 6298; probes as in RFC 8985). Independent
// of addresses: `transmit` puts a segment on the wire. [TL-23] .. [TL-25]
import type { Clock, Timer } from "#base/clock.ts";
import { FLAG, type Segment } from "../packets/segment.ts";
import { type Arrived, Flight, type Sent } from "./flight.ts";
import { SendQueue } from "./send-queue.ts";
import { SendWindow } from "./send-window.ts";
import { diff, LARGE_SEGMENT, MSS, plus } from "./sequence.ts";

// Round-trip times: smoothed for timeouts (RFC 6298), and the recent minimum, which is the path's latency without queues. [TL-24]

const MIN_RTO_MS = 200;
const MAX_RTO_MS = 30_000;
const FIRST_RTO_MS = 1_000;
/** The minimum is reset after one to two of these intervals, because paths change. */
const BASE_MS = 10_000;

class RoundTrip {
  #smooth = 0;
  #varies = 0;
  #now = { since: Number.NEGATIVE_INFINITY, base: Number.POSITIVE_INFINITY };
  #before = Number.POSITIVE_INFINITY;

  /** Adds one measurement in milliseconds, at a time of the monotonic clock. */
  add(sample: number, at: number): void {
    if (this.#smooth === 0) {
      this.#smooth = Math.max(sample, 0.01);
      this.#varies = sample / 2;
    } else {
      this.#varies = 0.75 * this.#varies + 0.25 * Math.abs(this.#smooth - sample);
      this.#smooth = 0.875 * this.#smooth + 0.125 * sample;
    }
    if (at - this.#now.since >= BASE_MS) {
      this.#before = this.#now.base;
      this.#now = { since: at, base: sample };
    } else this.#now.base = Math.min(this.#now.base, sample);
  }

  /** The smoothed value; 0 before the first measurement. */
  get smooth(): number {
    return this.#smooth;
  }

  /** The recent minimum. */
  get base(): number {
    return Math.min(this.#now.base, this.#before);
  }

  /** The retransmission timeout, after which all unacknowledged data is considered lost. */
  get timeout(): number {
    if (this.#smooth === 0) return FIRST_RTO_MS;
    return Math.min(MAX_RTO_MS, Math.max(MIN_RTO_MS, this.#smooth + 4 * this.#varies));
  }
}

/** Consecutive timeouts after which the peer is considered dead; about five minutes. */
const MAX_TRIES = 14;
/** Minimum delay of the tail loss probe, which is sent after two round trips. */
const MIN_PROBE_MS = 30;
/** Duplicate acknowledgments that signal a loss, for peers without blocks. */
const REPEATS = 3;
/** Minimum number of segments per window, so that a slow path is not blocked by one segment. */
const SEGMENTS_IN_WINDOW = 8;

export type SenderOptions = {
  clock: Clock;
  firstSeq: number;
  transmit(seq: number, flags: number, data: Uint8Array | undefined): void;
  /** Called when the peer has not responded for a long time. */
  dead(): void;
  /** Called for each write. `isLittle`: this write and the data in flight are small, so someone is waiting for it interactively. */
  written(isLittle: boolean): void;
  /** True if someone is typing on another connection with the same peer. */
  isTypedBeside(): boolean;
};

export type Learned = {
  mss: number;
  /** The larger segment size that the peer accepts; undefined if it sent none. */
  large: number | undefined;
  scale: number;
  hasBlocks: boolean;
  window: number;
};

export class Sender {
  readonly #o: SenderOptions;
  readonly #queue = new SendQueue();
  readonly #flight = new Flight();
  readonly #window = new SendWindow();
  readonly #trip = new RoundTrip();
  #next: number;
  #unacked: number;
  #peerWindow = 0;
  #mss = 536;
  #large = 536;
  #scale = 0;
  #hasBlocks = false;
  #isOpen = false;
  #repeats = 0;
  #recover: number | undefined;
  #wasFull = false;
  #tries = 0;
  #hasProbed = false;
  #timer: Timer | undefined;
  #due = Number.POSITIVE_INFINITY;
  #ringsAt = 0;
  #isEnding = false;
  #finSent = false;
  /** Our FIN was acknowledged. */
  finAcked = false;
  /** Number of retransmitted segments. */
  resent = 0;

  constructor(options: SenderOptions) {
    this.#o = options;
    this.#next = options.firstSeq;
    this.#unacked = options.firstSeq;
  }

  /** The next sequence number. */
  get next(): number {
    return this.#next;
  }
  get isEnding(): boolean {
    return this.#isEnding;
  }
  /** For measurements: bytes in flight, the window, and the round trip in milliseconds. */
  get figures(): { flight: number; window: number; rtt: number } {
    return { flight: this.#flight.bytes, window: this.#window.size, rtt: this.#trip.smooth };
  }

  /** Sends the SYN or SYN-ACK. */
  sendSyn(flags: number): void {
    this.#send(flags, undefined);
  }

  /** Applies the options of the peer's SYN. `scale` is 0 unless both sides support scaling. */
  learn({ mss, large, scale, hasBlocks, window }: Learned): void {
    this.#mss = Math.max(1, Math.min(mss, MSS));
    this.#large = Math.max(this.#mss, Math.min(large ?? 0, LARGE_SEGMENT));
    this.#scale = scale;
    this.#hasBlocks = hasBlocks;
    this.#peerWindow = window;
  }

  /** The handshake is complete. */
  open(): void {
    this.#isOpen = true;
  }

  write(data: Uint8Array): Promise<void> {
    this.#o.written(data.byteLength + this.#queue.bytes + this.#flight.bytes < MSS);
    const written = this.#queue.put(data);
    this.pump();
    return written;
  }

  /** No more data follows the queued data. */
  end(): void {
    this.#isEnding = true;
    this.pump();
  }

  /** True if this acknowledges only data that was sent. */
  isPossible(ack: number): boolean {
    return diff(ack, this.#next) <= 0;
  }

  /** Processes a segment's acknowledgment and window. */
  take({ ack, window, blocks, flags, data }: Segment): void {
    const peerWindow = flags & FLAG.syn ? window : window << this.#scale;
    const acked = diff(ack, this.#unacked);
    if (acked < 0) return;
    const arrived: Arrived = { bytes: 0, sentAt: undefined, earliest: this.#o.clock.monotonic() - this.#trip.base };
    const isRepeat = acked === 0 && data.byteLength === 0 && peerWindow === this.#peerWindow && this.#flight.length > 0;
    this.#peerWindow = peerWindow;
    // The peer responds, even if its window is closed.
    this.#tries = 0;
    if (acked > 0) {
      this.#unacked = ack;
      this.#repeats = 0;
      this.#hasProbed = false;
      this.#flight.acknowledge(ack, arrived);
      if (this.#finSent && ack === this.#next) this.finAcked = true;
    } else if (isRepeat) this.#repeats += 1;
    if (this.#hasBlocks) this.#flight.acknowledgeBlocks(blocks, arrived);
    this.#judge(acked, arrived);
    if (acked > 0 || arrived.bytes > 0) this.#arm();
    if (!this.#isOpen) return;
    this.#resend();
  }

  /** Sends as much as the windows allow. */
  pump(): void {
    if (!this.#isOpen) return;
    const segment = this.#segment;
    while (this.#queue.bytes > 0) {
      const sent = diff(this.#next, this.#unacked);
      const room = Math.min(this.#peerWindow - sent, this.#window.size - this.#flight.bytes);
      if (room < Math.min(segment, this.#queue.bytes)) {
        if (this.#flight.bytes + segment > this.#window.size) this.#wasFull = true;
        // Avoids silly windows: waits for a full segment, unless nothing is in flight that would open the window.
        if (room <= 0 || this.#flight.length > 0) {
          this.#arm();
          return;
        }
      }
      const data = this.#queue.take(Math.min(segment, room));
      this.#send(FLAG.ack | (this.#queue.bytes === 0 ? FLAG.psh : 0), data);
    }
    if (this.#isEnding && !this.#finSent) {
      this.#finSent = true;
      this.#send(FLAG.fin | FLAG.ack, undefined);
    }
  }

  /** Retransmits the oldest segment: the peer has not seen our SYN. */
  repeat(): void {
    const { oldest } = this.#flight;
    if (oldest) this.#again(oldest);
  }

  /** After a reconnect, data in flight may be lost: retransmits the oldest segment, and the rest once the peer reports what it has. */
  resume(): void {
    this.#tries = 0;
    this.#flight.loseAll();
    const lost = this.#flight.nextLost();
    if (lost) this.#again(lost);
  }

  /** Stops sending; queued writes fail. */
  stop(reason: Error): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#isOpen = false;
    this.#queue.fail(reason);
    this.#flight.clear();
  }

  /** The segment size: large if the window is large, because cost is per packet rather than per byte; the standard size on a slow path. */
  get #segment(): number {
    return Math.max(this.#mss, Math.min(this.#large, Math.floor(this.#window.size / SEGMENTS_IN_WINDOW)));
  }

  #judge(acked: number, arrived: Arrived): void {
    const now = this.#o.clock.monotonic();
    const sample = arrived.sentAt === undefined ? undefined : now - arrived.sentAt;
    if (sample !== undefined) this.#trip.add(sample, now);
    let lost = this.#flight.findLost();
    if (!this.#hasBlocks) lost += this.#judgeRepeats(acked);
    if (lost > 0) this.#window.lost(lost);
    if (arrived.bytes === 0) return;
    const { base, smooth } = this.#trip;
    const isTypedBeside = this.#o.isTypedBeside();
    this.#window.acknowledged({
      bytes: arrived.bytes,
      sample,
      now,
      base,
      smooth,
      wasFull: this.#wasFull,
      isTypedBeside,
    });
    this.#wasFull = false;
  }

  /** For a peer without blocks: three duplicate acknowledgments, and each partial acknowledgment, signal one loss (RFC 6582). */
  #judgeRepeats(acked: number): number {
    if (this.#recover !== undefined && diff(this.#unacked, this.#recover) >= 0) this.#recover = undefined;
    if (this.#recover !== undefined) return acked > 0 ? this.#flight.loseOldest() : 0;
    if (this.#repeats !== REPEATS) return 0;
    this.#recover = this.#next;
    return this.#flight.loseOldest();
  }

  #resend(): void {
    for (let one = this.#flight.nextLost(); one; one = this.#flight.nextLost()) {
      if (this.#flight.bytes > 0 && this.#flight.bytes + one.length > this.#window.size) return;
      this.#again(one);
    }
  }

  #again(one: Sent): void {
    this.resent += 1;
    this.#flight.resent(one, this.#o.clock.monotonic());
    this.#o.transmit(one.seq, one.flags, one.data);
    this.#arm();
  }

  #send(flags: number, data: Uint8Array | undefined): void {
    const length = (data?.byteLength ?? 0) + (flags & (FLAG.syn | FLAG.fin) ? 1 : 0);
    const seq = this.#next;
    this.#flight.add({ seq, length, flags, data, at: this.#o.clock.monotonic() });
    this.#next = plus(seq, length);
    this.#o.transmit(seq, flags, data);
    if (this.#due === Number.POSITIVE_INFINITY) this.#arm();
  }

  /** Sets the deadline. The timer itself is not reset if it fires early enough, because this runs for every packet. */
  #arm(): void {
    if (this.#flight.length === 0 && this.#queue.bytes === 0) {
      this.#due = Number.POSITIVE_INFINITY;
      return;
    }
    const now = this.#o.clock.monotonic();
    const isProbe = this.#mayProbe();
    const wait = isProbe ? Math.max(MIN_PROBE_MS, 2 * this.#trip.smooth) : this.#trip.timeout * 2 ** this.#tries;
    this.#due = now + Math.min(MAX_RTO_MS, wait);
    this.#ring(now);
  }

  #ring(now: number): void {
    if (this.#timer && this.#ringsAt <= this.#due) return;
    this.#timer?.cancel();
    this.#ringsAt = this.#due;
    this.#timer = this.#o.clock.after(Math.max(0, this.#due - now), () => this.#rang());
  }

  #rang(): void {
    this.#timer = undefined;
    const now = this.#o.clock.monotonic();
    if (this.#due === Number.POSITIVE_INFINITY) return;
    if (now < this.#due) this.#ring(now);
    else this.#late();
  }

  #mayProbe(): boolean {
    return (
      this.#isOpen &&
      !this.#hasProbed &&
      this.#tries === 0 &&
      this.#trip.smooth > 0 &&
      this.#flight.newest !== undefined
    );
  }

  #late(): void {
    const { newest } = this.#flight;
    if (this.#mayProbe() && newest) {
      // The tail of the data may be lost, with no later segment that would reveal it.
      this.#hasProbed = true;
      this.#again(newest);
      return;
    }
    this.#tries += 1;
    if (this.#tries > MAX_TRIES) {
      this.#o.dead();
      return;
    }
    const { oldest } = this.#flight;
    if (oldest) {
      this.#flight.loseAll();
      this.#window.timedOut();
      this.#again(this.#flight.nextLost() ?? oldest);
    } else if (this.#queue.bytes > 0 && this.#isOpen) {
      // The window is closed: probe it with one byte.
      this.#send(FLAG.ack, this.#queue.take(1));
      this.#arm();
    }
  }
}
