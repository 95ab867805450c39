// The send queue of one relay client: packets, discovery packets and short replies, each in a bounded queue. A full queue drops its oldest
// entry, so a client that does not read has a bounded cost and stalls no other client (facts/wire 3.2). [TL-5]

/** Maximum number of queued packets of either kind (facts/wire 3.2). */
const MAX_PACKETS = 512;
/** Maximum size of queued packets of either kind. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Maximum size of the packets in all queues of a relay, whose clients can be anyone. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;

/** What the queues of one relay hold together. */
export class QueuePool {
  bytes = 0;
  /** Queues with frames. */
  readonly #filled = new Set<PacketQueue>();
  #isTrimming = false;

  /** Number of queues with frames. */
  get filled(): number {
    return this.#filled.size;
  }

  /** Returns the most bytes of each kind that a queue may hold: an equal share. */
  get share(): number {
    return Math.min(MAX_BYTES, Math.floor(MAX_TOTAL_BYTES / Math.max(1, this.#filled.size)));
  }

  /**
   * Counts a change of a queue. When all together hold too much, every queue drops its oldest frames down to a quarter of the share, so that a
   * client that reads slowly still gets a share next to many that read nothing.
   */
  count(queue: PacketQueue, before: number): void {
    const after = queue.bytes;
    this.bytes += after - before;
    if (after > 0) this.#filled.add(queue);
    else this.#filled.delete(queue);
    if (this.bytes <= MAX_TOTAL_BYTES || this.#isTrimming) return;
    this.#isTrimming = true;
    const most = this.share / 4;
    for (const one of [...this.#filled]) one.trim(most);
    this.#isTrimming = false;
  }
}

class Ring {
  #frames: Uint8Array[] = [];
  #head = 0;
  #bytes = 0;

  /** Returns how many frames were dropped to make room. */
  put(frame: Uint8Array, most: number): number {
    this.#frames.push(frame);
    this.#bytes += frame.byteLength;
    return this.trim(most);
  }

  /** Drops the oldest frames beyond `most` bytes. Returns how many. */
  trim(most: number): number {
    let dropped = 0;
    while (this.#frames.length - this.#head > MAX_PACKETS || this.#bytes > most) {
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

  /** `pool` is shared by the queues of a relay; without one, the queue is bounded alone. */
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

  /** Drops everything that is queued. */
  clear(): void {
    while (this.take() !== undefined);
  }

  /** Drops the oldest frames of each kind beyond `most` bytes. */
  trim(most: number): void {
    const before = this.bytes;
    for (const ring of [this.#control, this.#discovery, this.#packets]) this.#dropped += ring.trim(most);
    this.#pool.count(this, before);
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
