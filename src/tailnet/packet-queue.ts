// The send queue of one relay client: packets, discovery packets and short replies, each in a bounded queue. A full queue drops its oldest
// entry, so a client that does not read has a bounded cost and stalls no other client (facts/wire 3.2). [TL-5]

/** Maximum number of queued packets of either kind (facts/wire 3.2). */
const MAX_PACKETS = 512;
/** Maximum size of queued packets of either kind. */
const MAX_BYTES = 2 * 1024 * 1024;

class Ring {
  #frames: Uint8Array[] = [];
  #head = 0;
  #bytes = 0;

  /** Returns how many frames were dropped to make room. */
  put(frame: Uint8Array): number {
    this.#frames.push(frame);
    this.#bytes += frame.byteLength;
    let dropped = 0;
    while (this.#frames.length - this.#head > MAX_PACKETS || this.#bytes > MAX_BYTES) {
      this.take();
      dropped += 1;
    }
    return dropped;
  }

  take(): Uint8Array | undefined {
    const frame = this.#frames[this.#head];
    if (frame === undefined) return undefined;
    this.#frames[this.#head] = EMPTY;
    this.#head += 1;
    this.#bytes -= frame.byteLength;
    if (this.#head >= MAX_PACKETS) {
      this.#frames = this.#frames.slice(this.#head);
      this.#head = 0;
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

  /** Returns the next frame: replies first, then discovery, then packets. */
  take(): Uint8Array | undefined {
    return this.#control.take() ?? this.#discovery.take() ?? this.#packets.take();
  }

  /** Number of queued bytes. */
  get bytes(): number {
    return this.#control.bytes + this.#discovery.bytes + this.#packets.bytes;
  }

  /** Frames dropped since the client connected. */
  get dropped(): number {
    return this.#dropped;
  }
}
