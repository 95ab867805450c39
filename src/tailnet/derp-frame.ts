// Frames of the relay (facts/wire 3.2): a type byte, a length, a payload. Extracts frames from a byte stream. Rejects a frame that is too
// long before its payload is received. [TL-2]

export const FRAME = {
  server_key: 0x01,
  client_info: 0x02,
  server_info: 0x03,
  send_packet: 0x04,
  receive_packet: 0x05,
  keep_alive: 0x06,
  note_preferred: 0x07,
  peer_gone: 0x08,
  peer_present: 0x09,
  forward_packet: 0x0a,
  watch_connections: 0x10,
  close_peer: 0x11,
  ping: 0x12,
  pong: 0x13,
  health: 0x14,
  restarting: 0x15,
} as const;

export const HEADER_BYTES = 5;
/** Maximum size of a packet from a peer, without the key before it. */
export const MAX_PACKET = 64 * 1024;
/** Maximum size of the frame with which a client introduces itself. */
export const MAX_CLIENT_INFO = 256 * 1024;
/** Maximum size of any other frame: a key and a packet. */
export const MAX_FRAME = 32 + MAX_PACKET;

/** `DERP` and a key emoji, in UTF-8. */
export const DERP_MAGIC = Uint8Array.of(0x44, 0x45, 0x52, 0x50, 0xf0, 0x9f, 0x94, 0x91);
/** The reasons why a peer no longer exists. */
export const PEER_GONE_REASON = { disconnected: 0, not_here: 1 } as const;

/** The prefix of discovery packets, which have their own queue. */
const DISCO_MAGIC = Uint8Array.of(0x54, 0x53, 0xf0, 0x9f, 0x92, 0xac);

export const isDiscovery = (packet: Uint8Array): boolean => DISCO_MAGIC.every((byte, i) => packet[i] === byte);

/** Returns a new frame with these parts. */
export const encodeFrame = (type: number, ...parts: readonly Uint8Array[]): Uint8Array => {
  let length = 0;
  for (const part of parts) length += part.byteLength;
  const frame = new Uint8Array(HEADER_BYTES + length);
  writeHead(frame, 0, type, length);
  let at = HEADER_BYTES;
  for (const part of parts) {
    frame.set(part, at);
    at += part.byteLength;
  }
  return frame;
};

/** Writes the header of a frame at `at`. */
export const writeHead = (target: Uint8Array, at: number, type: number, length: number): void => {
  target[at] = type;
  target[at + 1] = length >>> 24;
  target[at + 2] = length >>> 16;
  target[at + 3] = length >>> 8;
  target[at + 4] = length;
};

/** An invalid frame; the message is for the peer. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly tooBig: boolean;

  constructor(message: string, tooBig = false) {
    super(message);
    this.tooBig = tooBig;
  }
}

export interface Frame {
  type: number;
  /** May be a view of the pushed bytes: callers that keep it must copy it. */
  payload: Uint8Array;
}

const getLimit = (type: number): number => (type === FRAME.client_info ? MAX_CLIENT_INFO : MAX_FRAME);

/** Reassembles frames. Buffers at most one incomplete frame. */
export class FrameReader {
  /** The incomplete frame. The buffer may be longer, to hold the frame once its length is known. */
  #partial: Uint8Array | undefined;
  /** Number of received bytes in `#partial`. */
  #heldBytes = 0;

  /** Yields the frames that are now complete. Throws FrameError at the first invalid one. */
  *push(chunk: Uint8Array): Generator<Frame> {
    let at = 0;
    while (at < chunk.byteLength || this.#heldBytes > 0) {
      if (this.#heldBytes > 0) {
        at += this.#appendToFrame(chunk.subarray(at));
        const frame = parseCompleteFrame(this.#partial as Uint8Array, 0, this.#heldBytes);
        if (frame === undefined) {
          if (at >= chunk.byteLength) return;
          continue;
        }
        this.#heldBytes = 0;
        this.#partial = undefined;
        yield frame;
        continue;
      }
      const frame = parseCompleteFrame(chunk, at, chunk.byteLength);
      if (frame === undefined) {
        this.#appendToFrame(chunk.subarray(at));
        return;
      }
      at += HEADER_BYTES + frame.payload.byteLength;
      yield frame;
    }
  }

  /** Appends bytes up to the end of the incomplete frame. Returns how many were used. */
  #appendToFrame(bytes: Uint8Array): number {
    let taken = this.#append(bytes, HEADER_BYTES);
    if (this.#heldBytes < HEADER_BYTES) return taken;
    const header = this.#partial as Uint8Array;
    taken += this.#append(bytes.subarray(taken), HEADER_BYTES + readLength(header, 0));
    return taken;
  }

  /** Appends bytes until the frame has `total` of them. Returns how many were used. */
  #append(bytes: Uint8Array, total: number): number {
    const taken = Math.min(bytes.byteLength, total - this.#heldBytes);
    if (taken <= 0) return 0;
    const capacity = this.#partial?.byteLength ?? 0;
    if (capacity < this.#heldBytes + taken) {
      // The buffer grows with the received bytes, so that an announced length alone allocates no memory.
      const larger = new Uint8Array(Math.min(total, Math.max(this.#heldBytes + taken, capacity * 2)));
      if (this.#partial) larger.set(this.#partial.subarray(0, this.#heldBytes));
      this.#partial = larger;
    }
    (this.#partial as Uint8Array).set(bytes.subarray(0, taken), this.#heldBytes);
    this.#heldBytes += taken;
    return taken;
  }
}

const parseCompleteFrame = (bytes: Uint8Array, at: number, end: number): Frame | undefined => {
  if (end - at < HEADER_BYTES) return undefined;
  const length = readLength(bytes, at);
  const from = at + HEADER_BYTES;
  return end - from < length ? undefined : { type: bytes[at] as number, payload: bytes.subarray(from, from + length) };
};

/** Reads the length in the header at `at`. Throws FrameError if it exceeds the limit of the frame's type. */
const readLength = (bytes: Uint8Array, at: number): number => {
  const type = bytes[at] as number;
  const readByte = (offset: number): number => bytes[at + offset] as number;
  const length = ((readByte(1) << 24) | (readByte(2) << 16) | (readByte(3) << 8) | readByte(4)) >>> 0;
  if (length > getLimit(type)) throw new FrameError(`a frame of ${length} bytes is too large`, true);
  return length;
};
