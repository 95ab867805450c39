// One TCP connection with a peer, as a Duplex (RFC 9293): opening, ordering of received data, acknowledgments, closing. The Sender handles
// outgoing data. Urgent data and timestamps are not supported. [TL-23]
import type { Clock } from "#base/clock.ts";
import { generateBytes } from "#base/ids.ts";
import { type Duplex, readChunks, Wakeup, WireError } from "#src/wire/index.ts";
import { encodeSegment, FLAG, type Segment, type SocketPair } from "../packets/segment.ts";
import { Reassembly } from "./reassembly.ts";
import { Sender } from "./sender.ts";
import { addSeq, diff, MSS } from "./sequence.ts";

const WINDOW_SCALE = 6;
export const RECEIVE_WINDOW = 1024 * 1024;

/** State shared by all connections with one peer. */
export type Host = {
  readonly clock: Clock;
  /** Passes a packet to the tunnel. */
  sendPacket(packet: Uint8Array): void;
  /** Calls `run` at the end of the turn of the event loop. */
  endOfTurn(run: () => void): void;
  /** Bytes that may still be buffered for the peer, over all its connections. */
  getFreeBytes(): number;
  /** Adds to the number of buffered bytes, or subtracts from it. */
  addHeld(change: number): void;
  /** Called for each write on this connection; `isSmall` as in SenderOptions. */
  written(by: TcpConnection, isSmall: boolean): void;
  /** Returns whether a person is typing on another connection with the same peer. */
  isTypingElsewhere(connection: TcpConnection): boolean;
  /** The maximum segment size that this side accepts from another Slipway peer; undefined for the standard size. */
  readonly largeMss: number | undefined;
};

type State = "syn-sent" | "offered" | "syn-received" | "open" | "closed";

export class TcpConnection implements Duplex {
  readonly ends: SocketPair;
  readonly closed: Promise<WireError | undefined>;
  readonly #host: Host;
  readonly #onOver: (failure: WireError | undefined) => void;
  readonly #settled = Promise.withResolvers<WireError | undefined>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #sender: Sender;
  readonly #received = new Reassembly();
  readonly #readable = new Wakeup();
  #state: State = "syn-sent";
  #failure: WireError | undefined;
  #heldBytes = 0;
  /** The scale of this side's window; undefined if the peer does not support scaling. */
  #scale: number | undefined;
  #isSackPermitted = false;
  #largeMss: number | undefined;
  #isAckDue = false;
  #announcedWindow = RECEIVE_WINDOW;

  /** `onOver` is called once, when the connection has ended or broken. */
  constructor(ends: SocketPair, host: Host, onOver: (failure: WireError | undefined) => void) {
    this.ends = ends;
    this.#host = host;
    this.#onOver = onOver;
    this.closed = this.#settled.promise;
    this.#opened.promise.catch(() => {});
    this.#sender = new Sender({
      clock: host.clock,
      firstSeq: new DataView(generateBytes(4).buffer).getUint32(0),
      transmit: (seq, flags, data) => this.#transmit(seq, flags, data),
      onDead: () => this.reset("The peer does not answer."),
      written: (isSmall) => host.written(this, isSmall),
      isTypingElsewhere: () => host.isTypingElsewhere(this),
    });
  }

  /** True until the connection is open, refused or broken. */
  get isOpening(): boolean {
    return this.#state !== "open" && this.#state !== "closed";
  }
  get figures() {
    return { ...this.#sender.figures, resent: this.#sender.resent, held: this.#heldBytes };
  }

  /** Takes the SYN of a peer. Sends nothing before `accept` or `reset` is called. */
  acceptSyn(segment: Segment): void {
    this.#state = "offered";
    this.#handleSyn(segment);
  }

  /** Accepts an offered connection by sending the SYN-ACK. Bytes may be written immediately. */
  accept(): void {
    if (this.#state !== "offered") return;
    this.#state = "syn-received";
    this.#sender.sendSyn(FLAG.syn | FLAG.ack);
  }

  /** Sends the SYN of this side. Resolves once the connection is open; throws WireError `refused`, or the reason for the failure. */
  dial(): Promise<void> {
    this.#sender.sendSyn(FLAG.syn);
    return this.#opened.promise;
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.read();
      if (chunk) {
        this.#updateHeld();
        // If the last announced window was almost closed, announces that it is open again.
        if (this.#announcedWindow < RECEIVE_WINDOW / 4 && this.#getWindow() >= RECEIVE_WINDOW / 2) this.#scheduleAck();
        return chunk;
      }
      if (this.#failure) throw this.#failure;
      if (this.#received.hasEnded || this.#state === "closed") return undefined;
      await this.#readable.wait();
    }
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#sender.isEnding || this.#state === "closed") {
      return Promise.reject(new WireError("closed", "Our side of the connection has ended."));
    }
    return bytes.byteLength === 0 ? Promise.resolve() : this.#sender.write(bytes);
  }

  async end(): Promise<void> {
    if (this.#state !== "closed") this.#sender.end();
  }

  reset(reason = "The connection was reset."): void {
    if (this.#state === "closed") return;
    this.#transmit(this.#sender.next, FLAG.rst | FLAG.ack, undefined);
    this.#stop(new WireError("reset", reason));
  }

  /** Retransmits immediately after a reconnect, and sends an acknowledgment that makes the peer do the same. */
  resume(): void {
    if (this.#state !== "open") return;
    this.#sender.resume();
    this.#acknowledge();
  }

  /** Breaks the connection without notifying the peer. */
  abandon(reason: string): void {
    if (this.#state !== "closed") this.#stop(new WireError("closed", reason));
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    return readChunks(this);
  }

  /** Takes a segment from the peer. */
  push(segment: Segment): void {
    if (this.#state === "closed") {
      // The peer repeats its FIN, so this side's last acknowledgment was lost.
      if (segment.flags & FLAG.fin && !this.#failure) this.#acknowledge();
    } else if (segment.flags & FLAG.rst) this.#handleReset(segment);
    else if (this.#state === "syn-sent") this.#handleSynAck(segment);
    else if (segment.flags & FLAG.syn) this.#handleRepeatedSyn();
    else if (segment.flags & FLAG.ack && this.#state !== "offered") this.#handleEstablished(segment);
  }

  #handleSyn({ seq, mss, largeMss, scale, window, isSackPermitted }: Segment): void {
    this.#received.expected = addSeq(seq, 1);
    this.#scale = scale === undefined ? undefined : WINDOW_SCALE;
    this.#isSackPermitted = isSackPermitted;
    // The option is sent only to a peer that has sent it, because other implementations do not know it.
    this.#largeMss = largeMss === undefined ? undefined : this.#host.largeMss;
    this.#sender.applyPeerOptions({ mss: mss ?? 536, largeMss, scale: scale ?? 0, hasSack: isSackPermitted, window });
  }

  #handleSynAck(segment: Segment): void {
    const wanted = FLAG.syn | FLAG.ack;
    if ((segment.flags & wanted) !== wanted || segment.ack !== this.#sender.next) return;
    this.#handleSyn(segment);
    this.#open(segment);
    this.#acknowledge();
    this.#sender.pump();
  }

  #handleRepeatedSyn(): void {
    if (this.#state === "syn-received") this.#sender.resendOldest();
    else if (this.#state === "open") this.#acknowledge();
  }

  #handleReset({ seq, ack, flags }: Segment): void {
    const isDialing = this.#state === "syn-sent";
    const at = diff(seq, this.#received.expected);
    if (isDialing ? !(flags & FLAG.ack) || ack !== this.#sender.next : at < 0 || at > RECEIVE_WINDOW) return;
    this.#stop(
      isDialing
        ? new WireError("refused", "Nothing listens there.")
        : new WireError("reset", "The peer has reset the connection."),
    );
  }

  #handleEstablished(segment: Segment): void {
    if (!this.#sender.isPossible(segment.ack)) {
      this.#acknowledge();
      return;
    }
    if (this.#state === "syn-received") {
      if (segment.ack !== this.#sender.next) return;
      this.#open(segment);
    } else this.#sender.handleAck(segment);
    if (segment.data.byteLength > 0 || segment.flags & FLAG.fin) this.#handleData(segment);
    this.#sender.pump();
    if (this.#received.hasEnded && this.#sender.finAcked) this.#stop(undefined);
  }

  #open(segment: Segment): void {
    this.#state = "open";
    this.#sender.open();
    this.#sender.handleAck(segment);
    this.#opened.resolve();
  }

  #handleData({ seq, data, flags }: Segment): void {
    const limit = Math.min(RECEIVE_WINDOW, this.#host.getFreeBytes() + this.#heldBytes);
    const placement = this.#received.push(seq, data, (flags & FLAG.fin) !== 0, limit);
    this.#updateHeld();
    if (placement === "next") {
      this.#readable.wake();
      // A filled gap is acknowledged immediately, because the sender waits for it.
      if (this.#received.hasAhead || this.#received.hasEnded) this.#acknowledge();
      else this.#scheduleAck();
    } else if (placement === "ahead") this.#scheduleAck();
    else this.#acknowledge();
  }

  #updateHeld(): void {
    const { held } = this.#received;
    this.#host.addHeld(held - this.#heldBytes);
    this.#heldBytes = held;
  }

  #getWindow(): number {
    return this.#received.getWindow(Math.min(RECEIVE_WINDOW, this.#host.getFreeBytes() + this.#heldBytes));
  }

  #transmit(seq: number, flags: number, data: Uint8Array | undefined): void {
    const isSyn = (flags & FLAG.syn) !== 0;
    const isDial = isSyn && !(flags & FLAG.ack);
    const window = this.#getWindow();
    this.#announcedWindow = window;
    this.#isAckDue = false;
    const blocks =
      this.#isSackPermitted && !isSyn && !data && this.#received.hasAhead ? this.#received.blocks() : undefined;
    const syn = isDial
      ? { mss: MSS, scale: WINDOW_SCALE, isSackPermitted: true, largeMss: this.#host.largeMss }
      : { mss: MSS, scale: this.#scale, isSackPermitted: this.#isSackPermitted, largeMss: this.#largeMss };
    const packet = encodeSegment(this.ends, {
      seq,
      flags,
      data,
      blocks,
      ack: flags & FLAG.ack ? this.#received.expected : 0,
      window: isSyn ? window : window >> (this.#scale ?? 0),
      syn: isSyn ? syn : undefined,
    });
    this.#host.sendPacket(packet);
  }

  #acknowledge(): void {
    this.#transmit(this.#sender.next, FLAG.ack, undefined);
  }

  /** Schedules one acknowledgment for all segments of this turn. */
  #scheduleAck(): void {
    if (this.#isAckDue) return;
    this.#isAckDue = true;
    this.#host.endOfTurn(() => {
      if (this.#isAckDue && this.#state !== "closed") this.#acknowledge();
    });
  }

  #stop(failure: WireError | undefined): void {
    this.#state = "closed";
    this.#failure = failure;
    this.#sender.stop(failure ?? new WireError("closed", "The connection has ended."));
    if (failure) {
      this.#received.clear();
      this.#updateHeld();
    }
    this.#opened.reject(failure ?? new WireError("closed", "The connection has ended."));
    this.#readable.wake();
    this.#settled.resolve(failure);
    this.#onOver(failure);
  }
}
