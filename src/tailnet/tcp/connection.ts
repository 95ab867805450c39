// One TCP connection with a peer, as a Duplex (RFC 9293): opening, ordering of received data, acknowledgments, closing. The sender handles
// outgoing data. No urgent data or timestamps. [TL-23]
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
  /** Adjusts the number of buffered bytes. */
  addHeld(change: number): void;
  /** Called for each write on this connection; `isLittle` as in SenderOptions. */
  written(by: TcpConnection, isLittle: boolean): void;
  /** True if someone is typing on another connection. */
  isTypedBeside(one: TcpConnection): boolean;
  /** The maximum segment size we accept from a peer of this code; undefined for the standard size. */
  readonly largeSegment: number | undefined;
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
  /** The scale of our window; undefined if the peer does not support scaling. */
  #scale: number | undefined;
  #mayBlocks = false;
  #large: number | undefined;
  #isAckDue = false;
  #announcedWindow = RECEIVE_WINDOW;

  /** `over` is called once, when the connection has ended or broken. */
  constructor(ends: SocketPair, host: Host, over: (failure: WireError | undefined) => void) {
    this.ends = ends;
    this.#host = host;
    this.#onOver = over;
    this.closed = this.#settled.promise;
    this.#opened.promise.catch(() => {});
    this.#sender = new Sender({
      clock: host.clock,
      firstSeq: new DataView(generateBytes(4).buffer).getUint32(0),
      transmit: (seq, flags, data) => this.#transmit(seq, flags, data),
      onDead: () => this.reset("The peer does not answer."),
      written: (isLittle) => host.written(this, isLittle),
      isTypedBeside: () => host.isTypedBeside(this),
    });
  }

  /** True until it is open, refused or broken. */
  get isOpening(): boolean {
    return this.#state !== "open" && this.#state !== "closed";
  }
  get figures() {
    return { ...this.#sender.figures, resent: this.#sender.resent, held: this.#heldBytes };
  }

  /** Takes a peer's SYN; nothing is sent before `accept` or `reset`. */
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

  /** Sends our SYN. Resolves once open; throws WireError `refused`, or the reason for the failure. */
  dial(): Promise<void> {
    this.#sender.sendSyn(FLAG.syn);
    return this.#opened.promise;
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const chunk = this.#received.read();
      if (chunk) {
        this.#updateHeld();
        // The last announced window was almost closed: announce that it is open again.
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
      // The peer repeats its FIN, so our last acknowledgment was lost.
      if (segment.flags & FLAG.fin && !this.#failure) this.#acknowledge();
    } else if (segment.flags & FLAG.rst) this.#handleReset(segment);
    else if (this.#state === "syn-sent") this.#handleSynAck(segment);
    else if (segment.flags & FLAG.syn) this.#handleRepeatedSyn();
    else if (segment.flags & FLAG.ack && this.#state !== "offered") this.#handleEstablished(segment);
  }

  #handleSyn({ seq, mss, large, scale, window, mayBlocks }: Segment): void {
    this.#received.expected = addSeq(seq, 1);
    this.#scale = scale === undefined ? undefined : WINDOW_SCALE;
    this.#mayBlocks = mayBlocks;
    // Sent only to a peer that sent it: other implementations do not know the option.
    this.#large = large === undefined ? undefined : this.#host.largeSegment;
    this.#sender.applyPeerOptions({ mss: mss ?? 536, large, scale: scale ?? 0, hasBlocks: mayBlocks, window });
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
    const isDialling = this.#state === "syn-sent";
    const at = diff(seq, this.#received.expected);
    if (isDialling ? !(flags & FLAG.ack) || ack !== this.#sender.next : at < 0 || at > RECEIVE_WINDOW) return;
    this.#stop(
      isDialling
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
    const placed = this.#received.push(seq, data, (flags & FLAG.fin) !== 0, limit);
    this.#updateHeld();
    if (placed === "next") {
      this.#readable.wake();
      // A filled gap is acknowledged immediately, because the sender waits for it.
      if (this.#received.hasAhead || this.#received.hasEnded) this.#acknowledge();
      else this.#scheduleAck();
    } else if (placed === "ahead") this.#scheduleAck();
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
    const blocks = this.#mayBlocks && !isSyn && !data && this.#received.hasAhead ? this.#received.blocks() : undefined;
    const syn = isDial
      ? { mss: MSS, scale: WINDOW_SCALE, mayBlocks: true, large: this.#host.largeSegment }
      : { mss: MSS, scale: this.#scale, mayBlocks: this.#mayBlocks, large: this.#large };
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

  /** Sends one acknowledgment for everything received in this turn. */
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
