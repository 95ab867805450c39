// Reads and writes the DRPC packets of one stream: joins frames and checks the order of IDs. A packet is one or more frames with the same
// ID. Rejects decreasing IDs, unknown kinds, packets over 4 MiB, and unfinished packets beyond the budget of the connection. [WI-11]
// [WI-12] [WI-19]
import { copySmallView } from "../chunk-queue.ts";
import type { Duplex } from "../duplex.ts";
import { WireError } from "../wire-error.ts";
import {
  CONTROL,
  DONE,
  encodePackets,
  type Frame,
  KIND,
  type Kind,
  MAX_PACKET,
  NO_BODY,
  type Packet,
  readFrameStart,
} from "./frame.ts";

/** Limits the memory that all streams of a connection use for packets that are incomplete or not yet handled. */
export class PacketBudget {
  readonly #limit: number;
  #heldBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Adds these bytes. Throws WireError `too_large` beyond the limit, and then adds nothing. */
  hold(bytes: number): void {
    if (this.#heldBytes + bytes > this.#limit)
      throw new WireError("too_large", "The streams of the connection hold too many bytes of unfinished messages.");
    this.#heldBytes += bytes;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}

/** Parses packets from chunks of any size. Only a packet in several frames or chunks is copied; other packets are views. */
export class PacketParser {
  #chunk: Uint8Array = NO_BODY;
  #at = 0;
  /** The current frame, and the number of its bytes that are missing. */
  #frame: Frame | undefined;
  #missing = 0;
  /** The packet being assembled. */
  #open: { kind: number; body: PacketBody } | undefined;
  /** Bytes of that packet that count against the budget. */
  #heldBytes = 0;
  #lastStream = 0;
  #lastMessage = 0;
  readonly #budget: PacketBudget | undefined;

  constructor(budget?: PacketBudget) {
    this.#budget = budget;
  }

  /** True between the first and last byte of a packet: a stream that ends now was cut off. */
  get isInsidePacket(): boolean {
    return this.#frame !== undefined || this.#open !== undefined || this.#at < this.#chunk.byteLength;
  }

  /** Adds the next bytes. May be called only after `next` has returned undefined. */
  push(chunk: Uint8Array): void {
    const unparsed = this.#chunk.subarray(this.#at);
    this.#chunk = unparsed.byteLength === 0 ? chunk : concat(unparsed, chunk);
    this.#at = 0;
  }

  /** Returns the next packet; undefined if bytes are missing. Throws WireError `protocol` or `too_large`. */
  next(): Packet | undefined {
    for (;;) {
      if (!this.#frame && !this.#startFrame()) {
        // The incomplete header is copied, so that it does not retain its whole chunk.
        this.#chunk = copySmallView(this.#chunk.subarray(this.#at));
        this.#at = 0;
        return undefined;
      }
      const frame = this.#frame!;
      const piece = this.#chunk.subarray(this.#at, this.#at + this.#missing);
      this.#at += piece.byteLength;
      this.#missing -= piece.byteLength;
      const done = this.#missing === 0 && (frame.control & DONE) !== 0;
      const open = this.#open!;
      if (done && open.body.size === 0) open.body.replace(copySmallView(piece));
      else {
        if (!done) this.#hold(piece.byteLength);
        open.body.add(piece);
      }
      if (this.#missing > 0) return undefined;
      this.#frame = undefined;
      if (!done) continue;
      this.#open = undefined;
      this.#release();
      const { kind } = open;
      if (isKind(kind)) {
        return { kind, stream_id: frame.stream_id, message_id: frame.message_id, body: open.body.bytes };
      }
      if ((frame.control & CONTROL) === 0) throw new WireError("protocol", "Unknown kind of packet.");
    }
  }

  /** Drops all received bytes, for a stream that is not parsed further. */
  drop(): void {
    this.#release();
    this.#chunk = NO_BODY;
    this.#at = 0;
    this.#frame = undefined;
    this.#missing = 0;
    this.#open = undefined;
  }

  /** Releases the unfinished packet's bytes in the budget. */
  #release(): void {
    this.#budget?.release(this.#heldBytes);
    this.#heldBytes = 0;
  }

  #hold(bytes: number): void {
    this.#budget?.hold(bytes);
    this.#heldBytes += bytes;
  }

  #startFrame(): boolean {
    const frame = readFrameStart(this.#chunk, this.#at);
    if (!frame) return false;
    this.#at += frame.size;
    const kind = (frame.control >> 1) & 0x3f;
    const ahead = frame.stream_id - this.#lastStream || frame.message_id - this.#lastMessage;
    if (ahead < 0) throw new WireError("protocol", "Packet ids went backwards.");
    if (ahead > 0) this.#open = { kind, body: new PacketBody() };
    else if (!this.#open) throw new WireError("protocol", "A packet id was used twice.");
    else if (this.#open.kind !== kind) throw new WireError("protocol", "A packet changed its kind.");
    if (this.#open.body.size + frame.length > MAX_PACKET)
      throw new WireError("too_large", "A packet of more than 4 MiB.");
    this.#lastStream = frame.stream_id;
    this.#lastMessage = frame.message_id;
    this.#frame = frame;
    this.#missing = frame.length;
    return true;
  }
}

const isKind = (kind: number): kind is Kind => kind >= KIND.invoke && kind <= KIND.metadata;

const concat = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  const both = new Uint8Array(a.byteLength + b.byteLength);
  both.set(a);
  both.set(b, a.byteLength);
  return both;
};

/** The body of an incomplete packet. Memory is allocated for received bytes, never for the announced size. */
class PacketBody {
  size = 0;
  #buffer: Uint8Array = NO_BODY;

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.size);
  }

  replace(whole: Uint8Array): void {
    this.#buffer = whole;
    this.size = whole.byteLength;
  }

  add(piece: Uint8Array): void {
    const needed = this.size + piece.byteLength;
    if (needed > this.#buffer.byteLength) {
      const larger = new Uint8Array(Math.min(MAX_PACKET, Math.max(needed, this.#buffer.byteLength * 2)));
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.size);
    this.size = needed;
  }
}

/** Reads packets on demand, so that an unread stream applies backpressure to its peer. */
export class PacketReader {
  readonly #source: Pick<Duplex, "read">;
  readonly #parser: PacketParser;

  constructor(source: Pick<Duplex, "read">, budget?: PacketBudget) {
    this.#source = source;
    this.#parser = new PacketParser(budget);
  }

  /** Returns the next packet; undefined when the peer has ended its side. Throws WireError. */
  async next(): Promise<Packet | undefined> {
    try {
      return await this.#next();
    } catch (error) {
      this.#parser.drop();
      throw error;
    }
  }

  /** Reads and drops everything until the peer ends its side. Never rejects. */
  async skipRest(): Promise<void> {
    this.#parser.drop();
    try {
      while (await this.#source.read());
    } catch {
      // The stream is over.
    }
  }

  async #next(): Promise<Packet | undefined> {
    for (;;) {
      const packet = this.#parser.next();
      if (packet) return packet;
      const chunk = await this.#source.read();
      if (chunk) this.#parser.push(chunk);
      else if (this.#parser.isInsidePacket) throw new WireError("closed", "The stream was cut inside a packet.");
      else return undefined;
    }
  }
}

/** A packet without its IDs. */
export type OutgoingPacket = readonly [kind: Kind, body: Uint8Array];

/** Numbers and sends the packets of one side of a call. */
export class PacketWriter {
  readonly #target: Pick<Duplex, "write">;
  readonly #streamId: number;
  #messageId = 0;

  constructor(target: Pick<Duplex, "write">, streamId: number) {
    this.#target = target;
    this.#streamId = streamId;
  }

  /** Sends packets in one write. Resolves when they are sent. */
  async send(...packets: readonly OutgoingPacket[]): Promise<void> {
    const numbered: Packet[] = [];
    for (const [kind, body] of packets) {
      this.#messageId += 1;
      numbered.push({ kind, stream_id: this.#streamId, message_id: this.#messageId, body });
    }
    await this.#target.write(encodePackets(...numbered));
  }
}
