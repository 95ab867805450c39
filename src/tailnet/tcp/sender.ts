// The sending half of a connection: queueing, data in flight, retransmission (RFC 9293 3.8, RFC 6298; probes as in RFC 8985). Independent
// of addresses, because `transmit` builds and sends the segments. [TL-23] .. [TL-25]
import type { Clock, Timer } from "#base/clock.ts";
import { FLAG, type Segment } from "../packets/segment.ts";
import { type ArrivedData, Flight, type SentSegment } from "./flight.ts";
import { SendQueue } from "./send-queue.ts";
import { SendWindow } from "./send-window.ts";
import { addSeq, diff, LARGE_SEGMENT, MSS } from "./sequence.ts";

// Round-trip times: the smoothed one for timeouts (RFC 6298), and the recent minimum, which is the path's latency without queues. [TL-24]

const MIN_RTO_MS = 200;
const MAX_RTO_MS = 30_000;
const INITIAL_RTO_MS = 1_000;
/** The minimum is reset after one to two of these intervals, because paths change. */
const MIN_RTT_WINDOW_MS = 10_000;

class RttEstimator {
  #smoothed = 0;
  #variation = 0;
  /** The current interval and its minimum. */
  #interval = { since: Number.NEGATIVE_INFINITY, base: Number.POSITIVE_INFINITY };
  /** The minimum of the interval before. */
  #previousBase = Number.POSITIVE_INFINITY;

  /** Adds one measurement in milliseconds, at a time of the monotonic clock. */
  add(sample: number, at: number): void {
    if (this.#smoothed === 0) {
      this.#smoothed = Math.max(sample, 0.01);
      this.#variation = sample / 2;
    } else {
      this.#variation = 0.75 * this.#variation + 0.25 * Math.abs(this.#smoothed - sample);
      this.#smoothed = 0.875 * this.#smoothed + 0.125 * sample;
    }
    if (at - this.#interval.since >= MIN_RTT_WINDOW_MS) {
      this.#previousBase = this.#interval.base;
      this.#interval = { since: at, base: sample };
    } else this.#interval.base = Math.min(this.#interval.base, sample);
  }

  /** The smoothed round-trip time in milliseconds; 0 before the first measurement. */
  get smooth(): number {
    return this.#smoothed;
  }

  /** The recent minimum in milliseconds. */
  get base(): number {
    return Math.min(this.#interval.base, this.#previousBase);
  }

  /** The retransmission timeout, after which all unacknowledged data is considered lost. */
  get timeout(): number {
    if (this.#smoothed === 0) return INITIAL_RTO_MS;
    return Math.min(MAX_RTO_MS, Math.max(MIN_RTO_MS, this.#smoothed + 4 * this.#variation));
  }
}

/** Maximum number of consecutive timeouts, about five minutes. After that, the peer is considered dead. */
const MAX_TIMEOUTS = 14;
/** Minimum delay of the tail loss probe, which is sent after two round trips. */
const MIN_PROBE_MS = 30;
/** Number of duplicate acknowledgments that signal a loss, for peers without selective acknowledgments. */
const DUPLICATE_ACK_THRESHOLD = 3;
/** Minimum number of segments per window, so that a slow path is not blocked by one segment. */
const MIN_SEGMENTS_IN_WINDOW = 8;

export type SenderOptions = {
  clock: Clock;
  firstSeq: number;
  transmit(seq: number, flags: number, data: Uint8Array | undefined): void;
  /** Called when the peer has not responded for a long time. */
  onDead(): void;
  /** Called for each write. `isSmall`: this write and the unsent and unacknowledged data are small, so a person may be typing. */
  written(isSmall: boolean): void;
  /** Returns whether a person is typing on another connection with the same peer. */
  isTypingElsewhere(): boolean;
};

export type PeerSynOptions = {
  mss: number;
  /** The maximum segment size of the custom option; undefined if the peer did not send the option. */
  largeMss: number | undefined;
  scale: number;
  hasSack: boolean;
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
  #largeMss = 536;
  #scale = 0;
  #hasSack = false;
  #isOpen = false;
  #duplicateAckCount = 0;
  /** While a loss is repaired: the sequence number up to which data had been sent (RFC 6582). */
  #recoverySeq: number | undefined;
  #wasFull = false;
  #timeoutCount = 0;
  #hasProbed = false;
  #timer: Timer | undefined;
  /** When the retransmission or probe is due. */
  #dueAt = Number.POSITIVE_INFINITY;
  #timerAt = 0;
  #isEnding = false;
  #hasSentFin = false;
  /** The FIN of this side was acknowledged. */
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
  applyPeerOptions({ mss, largeMss, scale, hasSack, window }: PeerSynOptions): void {
    this.#mss = Math.max(1, Math.min(mss, MSS));
    this.#largeMss = Math.max(this.#mss, Math.min(largeMss ?? 0, LARGE_SEGMENT));
    this.#scale = scale;
    this.#hasSack = hasSack;
    this.#peerWindow = window;
  }

  /** Called when the handshake is complete. */
  open(): void {
    this.#isOpen = true;
  }

  write(data: Uint8Array): Promise<void> {
    this.#options.written(data.byteLength + this.#queue.bytes + this.#flight.bytes < MSS);
    const written = this.#queue.put(data);
    this.pump();
    return written;
  }

  /** Sends a FIN after the queued data. */
  end(): void {
    this.#isEnding = true;
    this.pump();
  }

  /** Returns whether this acknowledges only data that was sent. */
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
      latestSentAt: this.#options.clock.monotonic() - this.#rtt.base,
    };
    const isDuplicate =
      acked === 0 && data.byteLength === 0 && peerWindow === this.#peerWindow && this.#flight.length > 0;
    this.#peerWindow = peerWindow;
    // The peer is alive, even if its window is closed.
    this.#timeoutCount = 0;
    if (acked > 0) {
      this.#unacked = ack;
      this.#duplicateAckCount = 0;
      this.#hasProbed = false;
      this.#flight.acknowledge(ack, arrived);
      if (this.#hasSentFin && ack === this.#next) this.finAcked = true;
    } else if (isDuplicate) this.#duplicateAckCount += 1;
    if (this.#hasSack) this.#flight.acknowledgeBlocks(blocks, arrived);
    this.#updateWindow(acked, arrived);
    if (acked > 0 || arrived.bytes > 0) this.#setDeadline();
    if (!this.#isOpen) return;
    this.#retransmitLost();
  }

  /** Sends as much as the windows allow. */
  pump(): void {
    if (!this.#isOpen) return;
    const segmentSize = this.#segmentSize;
    while (this.#queue.bytes > 0) {
      const sent = diff(this.#next, this.#unacked);
      const allowed = Math.min(this.#peerWindow - sent, this.#window.size - this.#flight.bytes);
      if (allowed < Math.min(segmentSize, this.#queue.bytes)) {
        if (this.#flight.bytes + segmentSize > this.#window.size) this.#wasFull = true;
        // Waits until the window has space for a full segment (avoids the silly window syndrome). If nothing is in flight, no
        // acknowledgment would open the window, so a smaller segment is sent.
        if (allowed <= 0 || this.#flight.length > 0) {
          this.#setDeadline();
          return;
        }
      }
      const data = this.#queue.take(Math.min(segmentSize, allowed));
      this.#send(FLAG.ack | (this.#queue.bytes === 0 ? FLAG.psh : 0), data);
    }
    if (this.#isEnding && !this.#hasSentFin) {
      this.#hasSentFin = true;
      this.#send(FLAG.fin | FLAG.ack, undefined);
    }
  }

  /** Retransmits the oldest segment, because the peer has not received this side's SYN. */
  resendOldest(): void {
    const { oldest } = this.#flight;
    if (oldest) this.#retransmit(oldest);
  }

  /** After a reconnect, data in flight may be lost: retransmits the oldest segment, and others once the peer acknowledges it. */
  resume(): void {
    this.#timeoutCount = 0;
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

  /**
   * The segment size: larger with a large window, because the cost is per packet rather than per byte; the standard size on a slow path.
   */
  get #segmentSize(): number {
    return Math.max(this.#mss, Math.min(this.#largeMss, Math.floor(this.#window.size / MIN_SEGMENTS_IN_WINDOW)));
  }

  #updateWindow(acked: number, arrived: ArrivedData): void {
    const now = this.#options.clock.monotonic();
    const sample = arrived.sentAt === undefined ? undefined : now - arrived.sentAt;
    if (sample !== undefined) this.#rtt.add(sample, now);
    let lost = this.#flight.findLost();
    if (!this.#hasSack) lost += this.#detectLossByDuplicates(acked);
    if (lost > 0) this.#window.onLoss(lost);
    if (arrived.bytes === 0) return;
    const { base, smooth } = this.#rtt;
    const isTypingElsewhere = this.#options.isTypingElsewhere();
    this.#window.onAck({
      bytes: arrived.bytes,
      sample,
      now,
      base,
      smooth,
      wasFull: this.#wasFull,
      isTypingElsewhere,
    });
    this.#wasFull = false;
  }

  /** For a peer without selective acknowledgments: three duplicate acknowledgments, and each partial one, signal one loss (RFC 6582). */
  #detectLossByDuplicates(acked: number): number {
    if (this.#recoverySeq !== undefined && diff(this.#unacked, this.#recoverySeq) >= 0) this.#recoverySeq = undefined;
    if (this.#recoverySeq !== undefined) return acked > 0 ? this.#flight.markOldestLost() : 0;
    if (this.#duplicateAckCount !== DUPLICATE_ACK_THRESHOLD) return 0;
    this.#recoverySeq = this.#next;
    return this.#flight.markOldestLost();
  }

  #retransmitLost(): void {
    for (let lost = this.#flight.findOldestLost(); lost; lost = this.#flight.findOldestLost()) {
      if (this.#flight.bytes > 0 && this.#flight.bytes + lost.length > this.#window.size) return;
      this.#retransmit(lost);
    }
  }

  #retransmit(segment: SentSegment): void {
    this.resent += 1;
    this.#flight.markResent(segment, this.#options.clock.monotonic());
    this.#options.transmit(segment.seq, segment.flags, segment.data);
    this.#setDeadline();
  }

  #send(flags: number, data: Uint8Array | undefined): void {
    const length = (data?.byteLength ?? 0) + (flags & (FLAG.syn | FLAG.fin) ? 1 : 0);
    const seq = this.#next;
    this.#flight.add({ seq, length, flags, data, at: this.#options.clock.monotonic() });
    this.#next = addSeq(seq, length);
    this.#options.transmit(seq, flags, data);
    if (this.#dueAt === Number.POSITIVE_INFINITY) this.#setDeadline();
  }

  /** Sets the deadline. This runs for every packet, so a timer that fires earlier is kept. */
  #setDeadline(): void {
    if (this.#flight.length === 0 && this.#queue.bytes === 0) {
      this.#dueAt = Number.POSITIVE_INFINITY;
      return;
    }
    const now = this.#options.clock.monotonic();
    const isProbe = this.#canProbe();
    const delayMs = isProbe
      ? Math.max(MIN_PROBE_MS, 2 * this.#rtt.smooth)
      : this.#rtt.timeout * 2 ** this.#timeoutCount;
    this.#dueAt = now + Math.min(MAX_RTO_MS, delayMs);
    this.#setTimer(now);
  }

  #setTimer(now: number): void {
    if (this.#timer && this.#timerAt <= this.#dueAt) return;
    this.#timer?.cancel();
    this.#timerAt = this.#dueAt;
    this.#timer = this.#options.clock.after(Math.max(0, this.#dueAt - now), () => this.#onTimer());
  }

  #onTimer(): void {
    this.#timer = undefined;
    const now = this.#options.clock.monotonic();
    if (this.#dueAt === Number.POSITIVE_INFINITY) return;
    if (now < this.#dueAt) this.#setTimer(now);
    else this.#onTimeout();
  }

  #canProbe(): boolean {
    return (
      this.#isOpen &&
      !this.#hasProbed &&
      this.#timeoutCount === 0 &&
      this.#rtt.smooth > 0 &&
      this.#flight.newest !== undefined
    );
  }

  #onTimeout(): void {
    const { newest } = this.#flight;
    if (this.#canProbe() && newest) {
      // The last segments may be lost, and no later segment would reveal it.
      this.#hasProbed = true;
      this.#retransmit(newest);
      return;
    }
    this.#timeoutCount += 1;
    if (this.#timeoutCount > MAX_TIMEOUTS) {
      this.#options.onDead();
      return;
    }
    const { oldest } = this.#flight;
    if (oldest) {
      this.#flight.markAllLost();
      this.#window.onTimeout();
      this.#retransmit(this.#flight.findOldestLost() ?? oldest);
    } else if (this.#queue.bytes > 0 && this.#isOpen) {
      // The peer's window is closed: one byte tests whether it is still closed.
      this.#send(FLAG.ack, this.#queue.take(1));
      this.#setDeadline();
    }
  }
}
