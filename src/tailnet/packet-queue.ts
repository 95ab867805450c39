// The send queue of one relay client: packets, discovery packets and short replies, each in a bounded queue. A full queue drops its oldest
// frame, so a client that does not read uses a bounded amount of memory and stalls no other client (facts/wire 3.2). [TL-5]

/** Maximum number of queued frames of each kind (facts/wire 3.2). */
const MAX_PACKETS = 512;
/** Maximum size of queued frames of each kind. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Maximum size of the frames in all queues of a relay. Needed because the relay accepts any client. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;

/** Limits the memory of all queues of one relay together. */
export class QueuePool {
  bytes = 0;
  /** The queues that have frames. */
  readonly #filled = new Set<PacketQueue>();
  #isTrimming = false;

  /** The number of queues that have frames. */
  get filled(): number {
    return this.#filled.size;
  }

  /** The maximum number of bytes of each kind that a queue may hold: an equal share of the total. */
  get share(): number {
    return Math.min(MAX_BYTES, Math.floor(MAX_TOTAL_BYTES / Math.max(1, this.#filled.size)));
  }

  /**
   * Counts a change of a queue. When all queues together hold too much, each drops its oldest frames down to a quarter of the share, so
   * that a client that reads slowly still gets a share even if many others do not read at all.
   */
  count(queue: PacketQueue, before: number): void {
    const after = queue.bytes;
    this.bytes += after - before;
    if (after > 0) this.#filled.add(queue);
    else this.#filled.delete(queue);
    if (this.bytes <= MAX_TOTAL_BYTES || this.#isTrimming) return;
    this.#isTrimming = true;
    const maxBytes = this.share / 4;
    for (const filled of [...this.#filled]) filled.trim(maxBytes);
    this.#isTrimming = false;
  }
}

/** A queue of frames that drops its oldest ones beyond a limit. */
class Ring {
  #frames: Uint8Array[] = [];
  #head = 0;
  #bytes = 0;

  /** Adds a frame. Returns the number of frames that were dropped. */
  put(frame: Uint8Array, maxBytes: number): number {
    this.#frames.push(frame);
    this.#bytes += frame.byteLength;
    return this.trim(maxBytes);
  }

  /** Drops the oldest frames beyond `maxBytes`. Returns their number. */
  trim(maxBytes: number): number {
    let dropped = 0;
    while (this.#frames.length - this.#head > MAX_PACKETS || this.#bytes > maxBytes) {
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
  readonly #pool: QueuePool;
  readonly #control = new Ring();
  readonly #discovery = new Ring();
  readonly #packets = new Ring();
  #dropped = 0;

  /** `pool` is shared by the queues of a relay. Without one, the queue has its own limit. */
  constructor(pool: QueuePool = new QueuePool()) {
    this.#pool = pool;
  }

  put(kind: "control" | "discovery" | "packet", frame: Uint8Array): void {
    const ring = { control: this.#control, discovery: this.#discovery, packet: this.#packets }[kind];
    const before = this.bytes;
    this.#dropped += ring.put(frame, this.#pool.share);
    this.#pool.count(this, before);
  }

  /** Returns the next frame: replies first, then discovery, then packets. */
  take(): Uint8Array | undefined {
    const before = this.bytes;
    const frame = this.#control.take() ?? this.#discovery.take() ?? this.#packets.take();
    this.#pool.count(this, before);
    return frame;
  }

  /** Drops all queued frames. */
  clear(): void {
    while (this.take() !== undefined);
  }

  /** Drops the oldest frames of each kind beyond `maxBytes`. */
  trim(maxBytes: number): void {
    const before = this.bytes;
    for (const ring of [this.#control, this.#discovery, this.#packets]) this.#dropped += ring.trim(maxBytes);
    this.#pool.count(this, before);
  }

  /** Number of queued bytes. */
  get bytes(): number {
    return this.#control.bytes + this.#discovery.bytes + this.#packets.bytes;
  }

  /** The number of frames dropped since the client connected. */
  get dropped(): number {
    return this.#dropped;
  }
}
