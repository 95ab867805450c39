// What waits for one client of the relay: packets, discovery packets and short answers, each in a bounded queue of its own. A full queue
// lets its oldest go, so a client that does not read costs a known amount and stalls no other client (facts/wire 3.2). [TL-5]

/** Packets that may wait, of either kind (facts/wire 3.2). */
const MAX_PACKETS = 512;
/** Bytes that may wait, of either kind. */
const MAX_BYTES = 2 * 1024 * 1024;

class Ring {
  #frames: Uint8Array[] = [];
  #first = 0;
  #bytes = 0;

  /** Answers how many were dropped for it. */
  put(frame: Uint8Array): number {
    this.#frames.push(frame);
    this.#bytes += frame.byteLength;
    let dropped = 0;
    while (this.#frames.length - this.#first > MAX_PACKETS || this.#bytes > MAX_BYTES) {
      this.take();
      dropped += 1;
    }
    return dropped;
  }

  take(): Uint8Array | undefined {
    const frame = this.#frames[this.#first];
    if (frame === undefined) return undefined;
    this.#frames[this.#first] = EMPTY;
    this.#first += 1;
    this.#bytes -= frame.byteLength;
    if (this.#first >= MAX_PACKETS) {
      this.#frames = this.#frames.slice(this.#first);
      this.#first = 0;
    }
    return frame;
  }

  get bytes(): number {
    return this.#bytes;
  }
}

const EMPTY = new Uint8Array(0);

export class PacketQueue {
  readonly #control = new Ring();
  readonly #discovery = new Ring();
  readonly #packets = new Ring();
  #dropped = 0;

  put(kind: "control" | "discovery" | "packet", frame: Uint8Array): void {
    const ring = { control: this.#control, discovery: this.#discovery, packet: this.#packets }[kind];
    this.#dropped += ring.put(frame);
  }

  /** The next to send: answers first, then discovery, then packets. */
  take(): Uint8Array | undefined {
    return this.#control.take() ?? this.#discovery.take() ?? this.#packets.take();
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#control.bytes + this.#discovery.bytes + this.#packets.bytes;
  }

  /** Frames dropped since the client came. */
  get dropped(): number {
    return this.#dropped;
  }
}
