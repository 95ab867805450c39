// The sending half of a connection: queueing, data in flight, retransmission (RFC 9293 3.8, RFC 6298; probes as in RFC 8985). Independent
// of addresses: `transmit` puts a segment on the wire. [TL-23] .. [TL-25]
import type { Clock, Timer } from "#base/clock.ts";
import { FLAG, type Segment } from "../packets/segment.ts";
import { type ArrivedData, Flight, type SentSegment } from "./flight.ts";
import { SendQueue } from "./send-queue.ts";
import { SendWindow } from "./send-window.ts";
import { addSeq, diff, LARGE_SEGMENT, MSS } from "./sequence.ts";

// Round-trip times: smoothed for timeouts (RFC 6298), and the recent minimum, which is the path's latency without queues. [TL-24]

const MIN_RTO_MS = 200;
const MAX_RTO_MS = 30_000;
const INITIAL_RTO_MS = 1_000;
/** The minimum is reset after one to two of these intervals, because paths change. */
const MIN_RTT_WINDOW_MS = 10_000;

class RttEstimator {
  #smoothed = 0;
  #variation = 0;
  #now = { since: Number.NEGATIVE_INFINITY, base: Number.POSITIVE_INFINITY };
  #before = Number.POSITIVE_INFINITY;

  /** Adds one measurement in milliseconds, at a time of the monotonic clock. */
  add(sample: number, at: number): void {
    if (this.#smoothed === 0) {
      this.#smoothed = Math.max(sample, 0.01);
      this.#variation = sample / 2;
    } else {
      this.#variation = 0.75 * this.#variation + 0.25 * Math.abs(this.#smoothed - sample);
      this.#smoothed = 0.875 * this.#smoothed + 0.125 * sample;
    }
    if (at - this.#now.since >= MIN_RTT_WINDOW_MS) {
      this.#before = this.#now.base;
      this.#now = { since: at, base: sample };
    } else this.#now.base = Math.min(this.#now.base, sample);
  }

  /** The smoothed value; 0 before the first measurement. */
  get smooth(): number {
    return this.#smoothed;
  }

  /** The recent minimum. */
  get base(): number {
    return Math.min(this.#now.base, this.#before);
  }

  /** The retransmission timeout, after which all unacknowledged data is considered lost. */
  get timeout(): number {
    if (this.#smoothed === 0) return INITIAL_RTO_MS;
    return Math.min(MAX_RTO_MS, Math.max(MIN_RTO_MS, this.#smoothed + 4 * this.#variation));
  }
}

/** Consecutive timeouts after which the peer is considered dead; about five minutes. */
const MAX_TRIES = 14;
/** Minimum delay of the tail loss probe, which is sent after two round trips. */
const MIN_PROBE_MS = 30;
/** Duplicate acknowledgments that signal a loss, for peers without blocks. */
const DUPLICATE_ACK_THRESHOLD = 3;
/** Minimum number of segments per window, so that a slow path is not blocked by one segment. */
const MIN_SEGMENTS_IN_WINDOW = 8;

export type SenderOptions = {
  clock: Clock;
  firstSeq: number;
  transmit(seq: number, flags: number, data: Uint8Array | undefined): void;
  /** Called when the peer has not responded for a long time. */
  onDead(): void;
  /** Called for each write. `isLittle`: this write and the data in flight are small, so someone is waiting for it interactively. */
  written(isLittle: boolean): void;
  /** True if someone is typing on another connection with the same peer. */
  isTypedBeside(): boolean;
};

export type PeerSynOptions = {
  mss: number;
  /** The larger segment size that the peer accepts; undefined if it sent none. */
  large: number | undefined;
  scale: number;
  hasBlocks: boolean;
  window: number;
};

export class Sender {
  readonly #options: SenderOptions;
  readonly #queue = new SendQueue();
  readonly #flight = new Flight();
  readonly #window = new SendWindow();
  readonly #rtt = new RttEstimator();
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
  #timerAt = 0;
  #isEnding = false;
  #finSent = false;
  /** Our FIN was acknowledged. */
  finAcked = false;
  /** Number of retransmitted segments. */
  resent = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
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
    return { flight: this.#flight.bytes, window: this.#window.size, rtt: this.#rtt.smooth };
  }

  /** Sends the SYN or SYN-ACK. */
  sendSyn(flags: number): void {
    this.#send(flags, undefined);
  }

  /** Applies the options of the peer's SYN. `scale` is 0 unless both sides support scaling. */
  applyPeerOptions({ mss, large, scale, hasBlocks, window }: PeerSynOptions): void {
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
    this.#options.written(data.byteLength + this.#queue.bytes + this.#flight.bytes < MSS);
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
  handleAck({ ack, window, blocks, flags, data }: Segment): void {
    const peerWindow = flags & FLAG.syn ? window : window << this.#scale;
    const acked = diff(ack, this.#unacked);
    if (acked < 0) return;
    const arrived: ArrivedData = {
      bytes: 0,
      sentAt: undefined,
      earliest: this.#options.clock.monotonic() - this.#rtt.base,
    };
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
    this.#updateWindow(acked, arrived);
    if (acked > 0 || arrived.bytes > 0) this.#setDeadline();
    if (!this.#isOpen) return;
    this.#retransmitLost();
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
          this.#setDeadline();
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
  resendOldest(): void {
    const { oldest } = this.#flight;
    if (oldest) this.#retransmit(oldest);
  }

  /** After a reconnect, data in flight may be lost: retransmits the oldest segment, and the rest once the peer reports what it has. */
  resume(): void {
    this.#tries = 0;
    this.#flight.markAllLost();
    const lost = this.#flight.findOldestLost();
    if (lost) this.#retransmit(lost);
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
    return Math.max(this.#mss, Math.min(this.#large, Math.floor(this.#window.size / MIN_SEGMENTS_IN_WINDOW)));
  }

  #updateWindow(acked: number, arrived: ArrivedData): void {
    const now = this.#options.clock.monotonic();
    const sample = arrived.sentAt === undefined ? undefined : now - arrived.sentAt;
    if (sample !== undefined) this.#rtt.add(sample, now);
    let lost = this.#flight.findLost();
    if (!this.#hasBlocks) lost += this.#detectRepeatLoss(acked);
    if (lost > 0) this.#window.onLoss(lost);
    if (arrived.bytes === 0) return;
    const { base, smooth } = this.#rtt;
    const isTypedBeside = this.#options.isTypedBeside();
    this.#window.onAck({
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
  #detectRepeatLoss(acked: number): number {
    if (this.#recover !== undefined && diff(this.#unacked, this.#recover) >= 0) this.#recover = undefined;
    if (this.#recover !== undefined) return acked > 0 ? this.#flight.markOldestLost() : 0;
    if (this.#repeats !== DUPLICATE_ACK_THRESHOLD) return 0;
    this.#recover = this.#next;
    return this.#flight.markOldestLost();
  }

  #retransmitLost(): void {
    for (let one = this.#flight.findOldestLost(); one; one = this.#flight.findOldestLost()) {
      if (this.#flight.bytes > 0 && this.#flight.bytes + one.length > this.#window.size) return;
      this.#retransmit(one);
    }
  }

  #retransmit(one: SentSegment): void {
    this.resent += 1;
    this.#flight.markResent(one, this.#options.clock.monotonic());
    this.#options.transmit(one.seq, one.flags, one.data);
    this.#setDeadline();
  }

  #send(flags: number, data: Uint8Array | undefined): void {
    const length = (data?.byteLength ?? 0) + (flags & (FLAG.syn | FLAG.fin) ? 1 : 0);
    const seq = this.#next;
    this.#flight.add({ seq, length, flags, data, at: this.#options.clock.monotonic() });
    this.#next = addSeq(seq, length);
    this.#options.transmit(seq, flags, data);
    if (this.#due === Number.POSITIVE_INFINITY) this.#setDeadline();
  }

  /** Sets the deadline. The timer itself is not reset if it fires early enough, because this runs for every packet. */
  #setDeadline(): void {
    if (this.#flight.length === 0 && this.#queue.bytes === 0) {
      this.#due = Number.POSITIVE_INFINITY;
      return;
    }
    const now = this.#options.clock.monotonic();
    const isProbe = this.#canProbe();
    const wait = isProbe ? Math.max(MIN_PROBE_MS, 2 * this.#rtt.smooth) : this.#rtt.timeout * 2 ** this.#tries;
    this.#due = now + Math.min(MAX_RTO_MS, wait);
    this.#setTimer(now);
  }

  #setTimer(now: number): void {
    if (this.#timer && this.#timerAt <= this.#due) return;
    this.#timer?.cancel();
    this.#timerAt = this.#due;
    this.#timer = this.#options.clock.after(Math.max(0, this.#due - now), () => this.#onTimer());
  }

  #onTimer(): void {
    this.#timer = undefined;
    const now = this.#options.clock.monotonic();
    if (this.#due === Number.POSITIVE_INFINITY) return;
    if (now < this.#due) this.#setTimer(now);
    else this.#onTimeout();
  }

  #canProbe(): boolean {
    return (
      this.#isOpen && !this.#hasProbed && this.#tries === 0 && this.#rtt.smooth > 0 && this.#flight.newest !== undefined
    );
  }

  #onTimeout(): void {
    const { newest } = this.#flight;
    if (this.#canProbe() && newest) {
      // The tail of the data may be lost, with no later segment that would reveal it.
      this.#hasProbed = true;
      this.#retransmit(newest);
      return;
    }
    this.#tries += 1;
    if (this.#tries > MAX_TRIES) {
      this.#options.onDead();
      return;
    }
    const { oldest } = this.#flight;
    if (oldest) {
      this.#flight.markAllLost();
      this.#window.onTimeout();
      this.#retransmit(this.#flight.findOldestLost() ?? oldest);
    } else if (this.#queue.bytes > 0 && this.#isOpen) {
      // The window is closed: probe it with one byte.
      this.#send(FLAG.ack, this.#queue.take(1));
      this.#setDeadline();
    }
  }
}
